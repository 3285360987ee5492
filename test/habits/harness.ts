import { homedir } from 'node:os'
import { join } from 'node:path'
import { INTERRUPTIONS_DEFAULT } from '../../rehearse/moments'
import { withFolder } from '../kit/folder'
import { harness, type Case, type Report } from '../kit/harness'
import { named } from '../support/options'
import { packRunner } from '../support/runner-program'
import { getEnvironment, type Environment, type EnvironmentName } from './environments'
import { HABITS, type Habit } from './habits'
import { live, type LifeReport, type Program } from './life'
import { pathWithPython, pretendedProgram } from './pretended'
import { obstacleOf, REAL_HABITS, realProgram, versionsOf } from './real'
import { rehearse, tableOfRehearsals, type Rehearsed } from './rehearsals'
import { tableOf } from './table'
import { EXPECTED, type Expected } from './verdicts'

interface HabitCase extends Case {
  habit: Habit
  seed: number
  program: Program
}

interface Place {
  runner: string
  path: string
}

const HABIT_OPTIONS = {
  kills: { default: 4, means: 'interruptions of each life' },
  only: { default: '', as: 'NAME,...', means: 'only these habits' },
  real: { default: false, means: 'tries real libraries, in environments of their own in the cache' },
  'cuda-torch': { default: false, means: 'with --real: may download PyTorch with CUDA, some 5 GB' },
}

/** Programs that save in many ways under the real runner, interrupted again and again. */
export const HABITUAL = harness({
  seeds: 3,
  jobs: 4,
  isQuiet: true,
  options: HABIT_OPTIONS,
  around: (_, use) =>
    withFolder('habits', async (folder) => {
      const runner = join(folder, 'runner.pyz')
      await packRunner(runner)
      return use({ runner, path: pathWithPython() })
    }),
  draw: ({ seeds, only, real, 'cuda-torch': isCudaTorchAllowed }) => {
    const programs = real
      ? realPrograms(only, isCudaTorchAllowed)
      : named(HABITS, only).map((habit) => ({ habit, program: pretendedProgram(habit) }))
    return seeds.flatMap((seed) => programs.map((one) => habitCase(one, seed)))
  },
  live: async ({ habit, program, seed }: HabitCase, place: Place, { kills }: { kills: number }) =>
    reportOf(await live({ ...place, habit, program, seed, kills })),
  table: (reports) => tableOf(reports.map(({ life }) => life)),
})

export function habitCase({ habit, program }: Pick<HabitCase, 'habit' | 'program'>, seed: number): HabitCase {
  const again = ['--only', habit.name, '--seed', `${seed}`]
  return { name: `${habit.name}, seed ${seed}`, again, habit, program, seed }
}

function reportOf(life: LifeReport): Report & { life: LifeReport } {
  const { breaches, kills, story } = life
  return {
    state: `interrupted ${kills} times`,
    breaches: breaches.map(({ kind, attempt, words }) => `${kind} in attempt ${attempt}: ${words}`),
    story: story.split('\n'),
    life,
  }
}

/** The real libraries that can be tried here; prints why the others cannot. */
function realPrograms(names: string, isCudaTorchAllowed: boolean): Pick<HabitCase, 'habit' | 'program'>[] {
  const home = process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
  const environments = new Map<EnvironmentName, Environment>()
  return named(REAL_HABITS, names).flatMap((habit) => {
    const { environment: name } = habit
    const environment = environments.get(name) ?? getEnvironment(name, { home, isCudaTorchAllowed, say })
    environments.set(name, environment)
    const obstacle = obstacleOf(habit, environment)
    say(
      `${habit.name}: ${versionsOf(habit, environment)}${obstacle === undefined ? '' : `; not tried, ${obstacle}`}`,
    )
    return obstacle === undefined ? [{ habit, program: realProgram(habit, environment) }] : []
  })
}

type RehearsalCase = Case & { expected: Expected }

const REHEARSAL_OPTIONS = {
  interruptions: { default: INTERRUPTIONS_DEFAULT, means: 'interruptions of each program' },
  for: { default: '', as: 'TIME', means: 'how long one takes at most; by its pace when missing' },
}

/** The same programs through `crucible rehearse`, whose verdict must be the expected one. */
export const REHEARSALS = harness({
  jobs: 4,
  isQuiet: true,
  options: REHEARSAL_OPTIONS,
  around: (_, use) => use(pathWithPython()),
  draw: () =>
    EXPECTED.map((expected) => ({ name: expected.name, again: ['--only', expected.name], expected })),
  live: ({ expected }: RehearsalCase, path: string, options: { interruptions: number; for: string }) =>
    rehearse(expected, path, { interruptions: options.interruptions, limit: options.for }),
  table: (reports: readonly Rehearsed[]) => tableOfRehearsals(reports),
})

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
