import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import type { RecoveryView } from '../../client/job/job-view'
import type { RunnerResult } from '../../core/documents'
import { FAILURE_CLASSES, type FailureClass } from '../../core/failure'
import { EMPTY_LEDGER, type Decision, type Ledger } from '../../core/job/ledger'
import { OFFERS_PER_ORDER_MAX } from '../../planner/plan/assumptions'
import { ASSUMED_UPLOAD_BYTES_PER_SECOND, SAVED_WITHIN_MS } from '../../core/job/saving'
import { formatDuration, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { DEFAULT_TIMING } from '../../core/time/timing'
import { decide } from '../../planner/policy/decide'
import { endFromResult } from '../../planner/policy/ending'
import { firstColumnOf, namesIn, pageOf, tableOf } from './tables'

const page = pageOf('reference/failures.md')
const HISTORIES = join(__dirname, '..', 'replay', 'histories')

/** What can happen: the class that it is decided by, and the golden histories that show it. */
const HAPPENS: Readonly<Record<string, { class: FailureClass; histories: string[] }>> = {
  Interruption: {
    class: 'interrupted',
    histories: ['job.interrupted-then-resumed', 'job.interrupted-too-often'],
  },
  Capacity: { class: 'capacity', histories: ['job.capacity-then-fallback', 'job.waited-for-capacity'] },
  Quota: { class: 'quota', histories: ['job.quota-then-fallback'] },
  'Launch failure': {
    class: 'capacity',
    histories: ['attempt.launched-and-never-came-up', 'attempt.refused'],
  },
  'An unreachable machine': {
    class: 'unreachable',
    histories: ['attempt.unreachable', 'job.unreachable-then-elsewhere', 'job.unreachable-twice'],
  },
  'A start script that ends without a runner': {
    class: 'unreachable',
    histories: ['attempt.unreachable', 'job.unreachable-twice'],
  },
  'A silent machine': {
    class: 'interrupted',
    histories: ['attempt.stopped-speaking', 'attempt.silent-started-again-given-up'],
  },
  'A reservation that ends': {
    class: 'expired',
    histories: ['job.reservation-ended-then-elsewhere', 'attempt.reservation-ends-unheeded'],
  },
  'A program that ignores SIGTERM': { class: 'interrupted', histories: ['attempt.drain-window-over'] },
  'A refused image': { class: 'auth', histories: ['job.image-refused'] },
  'A missing image or input': { class: 'invalid', histories: ['job.image-absent'] },
  // The same steps as for a refused image.
  'A store that refuses the machine': { class: 'auth', histories: ['job.image-refused'] },
  'A registry that does not answer': { class: 'transient', histories: ['job.registry-away-then-back'] },
  'The program fails': { class: 'workload', histories: ['job.workload-retried-then-failed'] },
}

/** So that a new part does not compile until it stands here. */
const PARTS: Record<Exclude<keyof RecoveryView & `${string}Ms`, 'totalMs' | 'overheadMs'>, string> = {
  detectMs: 'detect',
  drainMs: 'drain',
  acquireMs: 'acquire',
  bootMs: 'boot',
  restoreMs: 'restore',
  firstStepMs: 'first step',
}

const boldIn = (text = ''): string => /\*\*(.+?)\*\*/.exec(text)?.[1] ?? ''

describe('docs/reference/failures.md', () => {
  it('has the quirks that are tried, in the words of the code', () => {
    const root = join(__dirname, '..', '..')
    const tried = readFileSync(join(root, 'test/backends/ec2/quirks.test.ts'), 'utf8')
    const rows = tableOf(page, 'Quirks of accounts')
    const names = [...tried.matchAll(/describe\('quirk: (.+)'/g)].map(([, name]) => name)
    expect(rows.map(([name]) => name)).toEqual(names)
    const code = ['backends/ec2', 'storage']
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
          join(root, folder, name),
        ),
      )
      .filter((path) => path.endsWith('.ts'))
      .map((path) => readFileSync(path, 'utf8'))
      .join()
    for (const [name = '', , says = ''] of rows) {
      const sentences = [...says.matchAll(/\*(.+?)\*/g)].map(([, sentence]) => sentence!)
      expect([name, sentences.length]).not.toEqual([name, 0])
      for (const sentence of sentences) expect(code).toContain(sentence)
    }
  })

  it('has what can happen, each with its class, what is done, what to do and what it costs', () => {
    const rows = tableOf(page, 'What happens')
    expect(rows.map(([what, name = '']) => [boldIn(what), namesIn(name)])).toEqual(
      Object.entries(HAPPENS).map(([what, { class: failureClass }]) => [what, [failureClass]]),
    )
    expect(rows.filter((cells) => cells.length !== 5 || cells.includes(''))).toEqual([])
  })

  it.each(Object.entries(HAPPENS))('has golden histories of %s', (_what, { histories }) => {
    expect(histories.filter((name) => !existsSync(join(HISTORIES, `${name}.v1.json`)))).toEqual([])
  })

  it('has every part of a recovery', () => {
    expect(tableOf(page, 'Where the time goes').map(([name]) => boldIn(name))).toEqual(Object.values(PARTS))
  })

  it('has the figures of the code', () => {
    expect(page).toContain(`uploaded within ${SAVED_WITHIN_MS / SECOND_MS} s`)
    expect(page).toContain(`(${ASSUMED_UPLOAD_BYTES_PER_SECOND / 2 ** 20} MiB/s where none was measured`)
    expect(page).toContain(`\`CRUCIBLE_SILENCE\` (${formatDuration(DEFAULT_TIMING.silenceMs)})`)
    expect(page).toContain(`\`CRUCIBLE_REGISTRY_WITHIN\` (${formatDuration(DEFAULT_TIMING.registryMs)})`)
    const end = endFromResult({ reason: 'registry', message: '' } as RunnerResult)
    const pauseMs = end.kind === 'failed' ? end.failure.retryAfterMs! : 0
    expect(page).toContain(`leaves it alone for ${formatDuration(pauseMs)}`)
    expect(OFFERS_PER_ORDER_MAX).toBe(20)
  })

  it('has every failure class', () => {
    expect(firstColumnOf(page, 'Failure classes')).toEqual([...FAILURE_CLASSES])
  })

  it.each(
    tableOf(page, 'Failure classes').map(([name = '', , does = '', counts = '']) => ({
      name: namesIn(name)[0]!,
      does,
      counts,
    })),
  )('says of $name what is decided', ({ name, does, counts }) => {
    const { decision, ledger } = decisionAbout(name as FailureClass, EMPTY_LEDGER)
    expect(does.startsWith(decision.kind === 'again' ? 'tries again' : 'stops')).toBe(true)
    expect(counts).toBe(decision.kind === 'again' ? countedAs(ledger) : '')
    if (decision.kind !== 'again') return
    const [, pause] = /growing pauses up to (\w+)/.exec(does) ?? []
    expect(decision.afterMs > 0 || does.includes('asked for')).toBe(does.includes('pause'))
    if (pause !== undefined) expect(pause).toBe(formatDuration(5 * MINUTE_MS))
    const [, alone] = /avoids the \w+ for (\w+)/.exec(does) ?? []
    expect(decision.avoid.map(({ forMs }) => formatDuration(forMs))).toEqual(
      alone === undefined ? [] : [alone],
    )
    expect(decisionAbout(name as FailureClass, WORN).decision.kind === 'finish').toBe(counts !== 'nothing')
  })
})

function decisionAbout(failureClass: FailureClass, ledger: Ledger): { decision: Decision; ledger: Ledger } {
  return decide({
    end: {
      kind: 'failed',
      // What these are about comes before a machine.
      isLaunched: !['capacity', 'transient'].includes(failureClass),
      failure: { class: failureClass, message: 'x' },
    },
    drainReason: null,
    offerKeys: ['x'],
    ledger,
    policy: { failuresMax: 1, interruptionsMax: 1, unclassifiedMax: 1 },
  })
}

/** A ledger in which one more of anything is too much. */
const WORN: Ledger = {
  ...EMPTY_LEDGER,
  failures: 1,
  interruptions: 1,
  unclassified: 1,
  unreachable: 1,
  misses: 100,
}

function countedAs({ failures, interruptions, unclassified, unreachable = 0 }: Ledger): string {
  if (interruptions > 0) return 'an interruption'
  if (failures > 0) return 'a failure'
  if (unreachable > 0) return 'one in a row'
  return unclassified > 0 ? 'a few in a row' : 'nothing'
}
