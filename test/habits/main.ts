/** `npm run habits -- --help`. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { INTERRUPTIONS_DEFAULT } from '../../rehearse/moments'
import { readOptions } from '../support/options'
import { getEnvironment, type Environment, type EnvironmentName } from './environments'
import { HABITS, type Habit } from './habits'
import type { LifeReport, Program } from './life'
import { obstacleOf, REAL_HABITS, realProgram, versionsOf, type RealHabit } from './real'
import { runRehearsals, tableOfRehearsals, type Rehearsed } from './rehearsals'
import { pretendedProgram, runHabits } from './run'
import { tableOf } from './table'
import { EXPECTED } from './verdicts'

const say = (line: string): boolean => process.stdout.write(`${line}\n`)

/** As a shell says of a program that a signal has ended. */
const ENDED = { SIGINT: 130, SIGTERM: 143 } as const

async function main(): Promise<void> {
  const values = readOptions({
    name: 'habits',
    about: 'Interrupts programs that save in many ways, and reports what they lost (docs/design/habits.md).',
    options: {
      from: { default: 1, min: 0, means: 'the first seed' },
      count: { default: 3, means: 'lives of each habit' },
      kills: { default: 4, means: 'interruptions of each life' },
      jobs: { default: 4, means: 'lives at a time' },
      habit: { default: '', as: 'NAME,...', means: 'only these habits' },
      story: { default: false, means: 'prints the story of every broken life' },
      rehearse: {
        default: false,
        means: 'rehearses each program once, and compares the verdict with the expected one',
      },
      for: {
        default: '',
        as: 'TIME',
        means: 'with --rehearse: how long one takes at most; by its pace when missing',
      },
      real: { default: false, means: 'tries real libraries, in environments of their own in the cache' },
      'cuda-torch': { default: false, means: 'with --real: may download PyTorch with CUDA, some 5 GB' },
    },
  })
  if (values === undefined) return
  for (const [name, code] of Object.entries(ENDED)) process.once(name, () => process.exit(code))
  const beganMs = performance.now()
  const { jobs, kills, habit } = values
  if (values.rehearse)
    return rehearseAll({
      jobs,
      interruptions: Math.max(kills, INTERRUPTIONS_DEFAULT),
      limit: values.for,
      names: habit,
    })
  const { habits, programOf } = values.real
    ? realHabits(values.habit, values['cuda-torch'])
    : { habits: named(HABITS, values.habit), programOf: pretendedProgram }
  const again = values.real ? '--real ' : ''
  const onReport = (report: LifeReport): void => {
    if (report.breaches.length === 0) return
    const { habit, seed, breaches, story } = report
    say(`npm run habits -- ${again}--habit ${habit} --from ${seed} --count 1 --kills ${values.kills}`)
    for (const { kind, attempt, words } of breaches) say(`  ${kind} in attempt ${attempt}: ${words}`)
    if (values.story) say(story)
  }
  const reports = await runHabits({
    ...{ habits, programOf, onReport },
    ...{ firstSeed: values.from, lives: values.count, kills: values.kills, jobs: values.jobs },
  })
  say(tableOf(reports))
  say(`${((performance.now() - beganMs) / 1_000).toFixed(0)} s`)
  if (reports.some(({ breaches }) => breaches.length > 0)) process.exitCode = 1
}

async function rehearseAll(options: {
  jobs: number
  interruptions: number
  limit: string
  names: string
}): Promise<void> {
  const beganMs = performance.now()
  const onDone = ({ expected, report, faults }: Rehearsed): void => {
    if (faults.length === 0) return
    say(`npm run habits -- --rehearse --habit ${expected.name}`)
    for (const fault of faults) say(`  ${fault}`)
    for (const { name, outcome, text } of report?.checks ?? []) say(`    ${name}: ${outcome}, ${text}`)
    for (const { text, yaml } of report?.changes ?? []) say(`    change: ${text} ${yaml ?? ''}`)
  }
  const expected = named(EXPECTED, options.names)
  const all = await runRehearsals({ ...options, expected, onDone })
  say(tableOfRehearsals(all))
  say(`${((performance.now() - beganMs) / 1_000).toFixed(0)} s`)
  if (all.some(({ faults }) => faults.length > 0)) process.exitCode = 1
}

interface Chosen {
  habits: readonly Habit[]
  programOf: (habit: Habit) => Program
}

/** The real libraries that can be tried here; says of the others why they cannot. */
function realHabits(names: string, isCudaTorchAllowed: boolean): Chosen {
  const home = process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
  const environments = new Map<EnvironmentName, Environment>()
  const environmentOf = ({ environment }: RealHabit): Environment => {
    const found =
      environments.get(environment) ?? getEnvironment(environment, { home, isCudaTorchAllowed, say })
    environments.set(environment, found)
    return found
  }
  const habits = named(REAL_HABITS, names).filter((habit) => {
    const obstacle = obstacleOf(habit, environmentOf(habit))
    say(
      `${habit.name}: ${versionsOf(habit, environmentOf(habit))}${obstacle === undefined ? '' : `; not tried, ${obstacle}`}`,
    )
    return obstacle === undefined
  })
  return { habits, programOf: (habit) => realProgram(habit, environmentOf(habit as RealHabit)) }
}

function named<H extends { name: string }>(habits: readonly H[], text: string): readonly H[] {
  if (text === '') return habits
  return text.split(',').map((name) => {
    const habit = habits.find((each) => each.name === name)
    if (habit !== undefined) return habit
    throw new Error(`There is no habit ${name}. There are: ${habits.map((each) => each.name).join(', ')}`)
  })
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
