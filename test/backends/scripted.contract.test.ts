import { describeBackend } from './contract'
import { SCRIPTED_TRAITS, ScriptedHarness } from './scripted/harness'

describeBackend(
  'scripted, with tokens, started by its launch,',
  SCRIPTED_TRAITS,
  async () => new ScriptedHarness({}),
)

describeBackend(
  'scripted, without tokens, started after its launch, billed until terminated,',
  { ...SCRIPTED_TRAITS, looksForTags: true, startsLater: true, billsUntilCalled: true },
  async () =>
    new ScriptedHarness({ idempotency: 'tag', runnerStart: 'after-launch', billsUntil: 'terminate' }),
)

describeBackend(
  'scripted, without tokens, whose machines do not know their ids,',
  { ...SCRIPTED_TRAITS, looksForTags: true, billsUntilCalled: true },
  async () => new ScriptedHarness({ idempotency: 'tag', claimsBy: 'send', billsUntil: 'terminate' }),
)

describeBackend(
  'scripted, without tokens, whose machines take hand-overs,',
  { ...SCRIPTED_TRAITS, looksForTags: true, takesHandOvers: true, billsUntilCalled: true, tellsEnds: false },
  async () =>
    new ScriptedHarness(
      { idempotency: 'tag', claimsBy: 'send', billsUntil: 'terminate' },
      { takesHandOvers: true, stopsForMs: 100 },
    ),
)

describeBackend(
  'scripted, with tokens, whose machines take hand-overs,',
  { ...SCRIPTED_TRAITS, takesHandOvers: true },
  async () => new ScriptedHarness({}, { takesHandOvers: true }),
)

describeBackend(
  'scripted, which queues one offer at a time and confirms no end,',
  { ...SCRIPTED_TRAITS, queues: true, confirmsEnds: false, tellsEnds: false },
  async () => new ScriptedHarness({ queues: true, ends: 'requested', offersPerOrder: 'one' }),
)
