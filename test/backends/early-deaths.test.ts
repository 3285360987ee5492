/** Machines whose start ends without a runner, over each provider as it really answers: what is known, and how soon. */
import { afterEach, describe, expect, it } from '@jest/globals'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settleAttempt } from '../../activities/settle/settle'
import { shareLooks } from '../../activities/settle/shared-looks'
import { MachineWatch } from '../../activities/watch/machine'
import type { Backend } from '../../backends/backend'
import { failureOf } from '../../backends/errors'
import type { Settlement } from '../../core/activities'
import type { AttemptEnd } from '../../core/job/ledger'
import type { MachineHandle } from '../../core/handle'
import type { Order } from '../../core/job/plan'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { Ages } from '../../core/time/ages'
import { layout } from '../../storage/layout'
import { patient } from '../support/patience'
import { until } from '../support/until'
import { Ec2Harness } from './ec2/harness'
import { patiently, type Harness } from './harness'
import { LambdaHarness } from './lambda/harness'
import { WireStore } from './lambda/wire-store'
import { LocalHarness } from './local/harness'
import { ModalHarness } from './modal/harness'

interface Death {
  /** The text of the runner; missing if the store has none. */
  program?: string
  words: RegExp
}

const DEATHS: Readonly<Record<string, Death>> = {
  'ends at once with a message': {
    program: 'import sys\nprint("starting")\nsys.exit("no space left for the runner")\n',
    words: /no space left for the runner/,
  },
  'fails in its first lines': { program: 'import no_such_module\n', words: /no_such_module/ },
  'cannot be read by Python': { program: 'this is not\n', words: /SyntaxError/ },
  'is not in the store': { words: /is not the runner of the order|cannot be downloaded: HTTP 40[34]/ },
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
const textOf = ({ program = 'missing' }: Death): string => program

interface Place {
  harness: Harness & { dispose(): Promise<void> }
  /** That of the harness, or another one over the same cloud. */
  backend: Backend
  order: Order
}

type Opened = (death: Death) => Promise<Place>

const withStore = async (harness: LambdaHarness | ModalHarness, death: Death): Promise<Place> => {
  const runnerSha256 = digest(textOf(death))
  if (death.program !== undefined) await harness.store.put(layout.runner(runnerSha256), death.program)
  return { harness, backend: harness.backend, order: await harness.order({ runnerSha256 }) }
}

const folders: string[] = []
const stores: WireStore[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  for (const store of stores.splice(0)) await store.close()
})

const BACKENDS: Readonly<Record<string, Opened>> = {
  ec2: async (death) => {
    const runnerSha256 = digest(textOf(death))
    const body = Buffer.from(textOf(death)).toString('base64')
    const harness = await Ec2Harness.make()
    const empty = new WireStore(() => undefined)
    stores.push(empty)
    await empty.listen()
    const { read } = await empty.signUrls('no-runner', MINUTE_MS)
    const backend = await harness.reopen(
      {},
      { runnerUrl: async () => (death.program === undefined ? read : `data:text/plain;base64,${body}`) },
    )
    return { harness, backend, order: await harness.order({ runnerSha256 }) }
  },
  lambda: async (death) => withStore(await LambdaHarness.make(), death),
  modal: async (death) => withStore(await ModalHarness.make(), death),
  local: async (death) => {
    const folder = mkdtempSync(join(tmpdir(), 'crucible-deaths-'))
    folders.push(folder)
    const program = join(folder, 'runner.pyz')
    writeFileSync(program, textOf(death))
    const harness = await LocalHarness.make(program)
    return { harness, backend: harness.backend, order: await harness.order() }
  },
}

/** Follows an attempt as its workflow does: start, watch, settlement. Time passes faster while nothing happens. */
async function follow(place: Place): Promise<{ settlement: Settlement; tookMs: number }> {
  const { harness, backend, order } = place
  const { store } = harness
  const outcome = await backend.launch(order, { ...patiently(), send: `${order.attemptId}-s1` })
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  const { handle } = outcome
  const beganAtMs = Date.now()
  let aheadMs = 0
  const now = (): number => Date.now() + aheadMs
  const timing = { ...DEFAULT_TIMING, ...order.runner, powerOffMs: 0, observeMs: 50, goneConfirmMs: 100 }
  const end = await endOf(place, {
    handle,
    now,
    timing,
    pass: () => (aheadMs += SECOND_MS),
  })
  const tookMs = now() - beganAtMs
  const maskSecrets = async (_jobId: string, text: string): Promise<string> => text
  const settlement = await settleAttempt(
    {
      backend,
      store,
      now: Date.now,
      monotonicMs: now,
      ages: new Ages({ now: Date.now, monotonicMs: Date.now }),
      looks: shareLooks(backend, now),
      maskSecrets,
    },
    { order, handle, timing, windowMs: 0, end, drainReason: null, recordSeq: 1 },
    patiently().signal,
  )
  return { settlement, tookMs }
}

async function endOf(
  { harness: { store }, backend, order }: Place,
  {
    handle,
    now,
    timing,
    pass,
  }: { handle: MachineHandle; now: () => number; timing: typeof DEFAULT_TIMING; pass: () => void },
): Promise<AttemptEnd> {
  if (backend.start !== undefined) {
    let end: AttemptEnd | undefined
    await until(async () => {
      const failure = await backend.start!(handle, order, patiently()).then(() => undefined, failureOf)
      if (failure?.class === 'transient') return false
      end = failure && { kind: 'failed', isLaunched: true, failure }
      return true
    })
    if (end !== undefined) return end
  }
  const watch = new MachineWatch(
    { store, now, monotonicMs: now, backend: {} },
    { order, handle, timing, isRunning: false },
  )
  let end: AttemptEnd | undefined
  await until(async () => {
    const [look] = await backend.observe([handle], patiently())
    const seen = await watch.check(look, true)
    if (seen?.kind === 'over') end = seen.end
    pass()
    return end !== undefined
  })
  return end!
}

describe.each(Object.entries(BACKENDS))('a machine of %s whose runner', (name, open) => {
  let place: Place | undefined
  afterEach(() => place?.harness.dispose())

  // The local worker fetches the runner itself, before it starts a machine.
  const deaths = Object.entries(DEATHS).filter(([, { program }]) => name !== 'local' || program !== undefined)
  it.each(deaths)(
    '%s is at fault, known within a minute, in its own words',
    async (_, death) => {
      place = await open(death)
      const { settlement, tookMs } = await follow(place)
      expect(settlement.end).toMatchObject({
        kind: 'failed',
        isLaunched: true,
        failure: { class: 'unreachable', message: expect.stringMatching(death.words) },
      })
      expect(tookMs).toBeLessThan(patient(MINUTE_MS))
    },
    patient(120_000),
  )
})
