import { describe, expect } from '@jest/globals'
import { itHolds } from '../kit/jest'
import { chosen } from '../support/selection'
import { HABITS } from './habits'
import { habitCase, HABITUAL } from './harness'
import { pretendedProgram } from './pretended'

/** `npm run proof -- habits` has all of them, and interrupts each a dozen times. */
const ALL = [
  'hf_trainer',
  'two_goes',
  'tmp_rename',
  'lightning_logs',
  'config_first',
  'log_inside',
  'sharded',
  'symlink_latest',
  'torch_distributed',
]

const SOME = chosen(ALL, ['hf_trainer', 'two_goes', 'sharded'])

describe('a program that saves in a common way', () => {
  itHolds('loses nothing that it had saved: %s', HABITUAL, {
    cases: HABITS.filter(({ name }) => SOME.includes(name)).map((habit) =>
      habitCase({ habit, program: pretendedProgram(habit) }, 1),
    ),
    values: { kills: 2 },
    limitMs: 300_000,
    also: ({ life: { saves, resumes, kills } }) =>
      expect([kills, saves > 0, resumes > 0]).toEqual([2, true, true]),
  })
})
