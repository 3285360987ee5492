import { expect, it } from '@jest/globals'
import { HABITS } from './habits'
import { pretendedProgram, runHabits } from './run'
import { chosen } from '../support/selection'

/** `npm run habits` has all of them, and interrupts each a dozen times. */
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

it('programs that save in common ways lose nothing that they had saved', async () => {
  const reports = await runHabits({
    habits: HABITS.filter(({ name }) => SOME.includes(name)),
    programOf: pretendedProgram,
    ...{ firstSeed: 1, lives: 1, kills: 2, jobs: SOME.length, onReport: () => undefined },
  })
  expect(reports).toHaveLength(SOME.length)
  expect(
    reports.flatMap(({ habit, breaches, story }) => breaches.map((breach) => ({ habit, breach, story }))),
  ).toEqual([])
  for (const { habit, saves, resumes, kills } of reports)
    expect([habit, kills, saves > 0, resumes > 0]).toEqual([habit, 2, true, true])
}, 300_000)
