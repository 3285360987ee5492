import { describeBackend } from './contract'
import { ScriptedHarness } from './scripted/harness'

describeBackend('scripted, with tokens, started by its launch,', async () => new ScriptedHarness({}))

describeBackend(
  'scripted, without tokens, started after its launch, billed until terminated,',
  async () =>
    new ScriptedHarness({ idempotency: 'tag', runnerStart: 'after-launch', billsUntil: 'terminate' }),
)

describeBackend(
  'scripted, without tokens, whose machines do not know their ids,',
  async () => new ScriptedHarness({ idempotency: 'tag', claimsBy: 'send', billsUntil: 'terminate' }),
)
