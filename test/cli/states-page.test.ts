import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { FAILURE_CLASSES, type FailureClass } from '../../core/failure'
import { JOB_REASONS, JOB_STATES, JOB_TRANSITIONS } from '../../core/job'
import { EMPTY_LEDGER, type AttemptState, type Decision, type Ledger } from '../../core/ledger'
import { formatDuration } from '../../core/time'
import { BACKOFF_MAX_MS, decide } from '../../planner/decide'

const page = readFileSync(join(__dirname, '..', '..', 'docs', 'states.md'), 'utf8')

/** Rows of the table below a heading, each as its cells. */
function tableOf(heading: string): string[][] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? ''
  const [, , ...rows] = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)
const firstColumn = (heading: string): string[] => tableOf(heading).flatMap(([cell = '']) => namesIn(cell))

/** So that a new state of an attempt does not compile until it stands here. */
const ATTEMPT_STATES: Record<AttemptState, true> = {
  provisioning: true,
  running: true,
  stopping: true,
  succeeded: true,
  stopped: true,
  interrupted: true,
  failed: true,
}

describe('docs/states.md', () => {
  it('has the states of a job and what may follow them', () => {
    const told = tableOf('States of a job').map(([state = '', , next = '']) => [
      namesIn(state)[0],
      namesIn(next),
    ])
    expect(told).toEqual(JOB_STATES.map((state) => [state, [...JOB_TRANSITIONS[state]]]))
  })

  it('has every reason, and every state of an attempt', () => {
    expect(firstColumn('Reasons')).toEqual([...JOB_REASONS])
    expect(firstColumn('States of an attempt')).toEqual(Object.keys(ATTEMPT_STATES))
  })

  it('has every failure class', () => {
    expect(firstColumn('Failure classes')).toEqual([...FAILURE_CLASSES])
  })

  it.each(
    tableOf('Failure classes').map(([name = '', , does = '', counts = '']) => ({
      name: namesIn(name)[0]!,
      does,
      counts,
    })),
  )('says of $name what is decided', ({ name, does, counts }) => {
    const { decision, ledger } = decisionAbout(name as FailureClass, EMPTY_LEDGER)
    expect(does.startsWith(decision.kind === 'again' ? 'goes on' : 'stops')).toBe(true)
    expect(counts).toBe(decision.kind === 'again' ? countedAs(ledger) : '')
    if (decision.kind !== 'again') return
    const [, pause] = /growing pauses up to (\w+)/.exec(does) ?? []
    expect(decision.afterMs > 0 || does.includes('asked for')).toBe(does.includes('pause'))
    if (pause !== undefined) expect(pause).toBe(formatDuration(BACKOFF_MAX_MS))
    const [, alone] = /alone for (\w+)/.exec(does) ?? []
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
    wish: null,
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
