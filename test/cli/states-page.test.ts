import { describe, expect, it } from '@jest/globals'
import { JOB_REASONS, JOB_STATES, JOB_TRANSITIONS } from '../../core/job/job'
import type { AttemptState } from '../../core/job/ledger'
import { firstColumnOf, namesIn, pageOf, tableOf } from '../docs/tables'

const page = pageOf('reference/states.md')

const firstColumn = (heading: string): string[] => firstColumnOf(page, heading)

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

describe('docs/reference/states.md', () => {
  it('has the states of a job and what may follow them', () => {
    const told = tableOf(page, 'States of a job').map(([state = '', , next = '']) => [
      namesIn(state)[0],
      namesIn(next),
    ])
    expect(told).toEqual(JOB_STATES.map((state) => [state, [...JOB_TRANSITIONS[state]]]))
  })

  it('has every reason, and every state of an attempt', () => {
    expect(firstColumn('Reasons')).toEqual([...JOB_REASONS])
    expect(firstColumn('States of an attempt')).toEqual(Object.keys(ATTEMPT_STATES))
  })
})
