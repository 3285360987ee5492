/** `npm run habits -- --help`. */
import { readOptions } from '../support/options'
import { HABITS, type Habit } from './habits'
import type { LifeReport } from './life'
import { pretendedProgram, runHabits } from './run'
import { tableOf } from './table'

const say = (line: string): boolean => process.stdout.write(`${line}\n`)

async function main(): Promise<void> {
  const values = readOptions({
    name: 'habits',
    about: 'Interrupts programs that save in many ways, and reports what they lost.',
    options: {
      from: { default: 1, min: 0, means: 'the first seed' },
      count: { default: 3, means: 'lives of each habit' },
      kills: { default: 4, means: 'interruptions of each life' },
      jobs: { default: 4, means: 'lives at a time' },
      habit: { default: '', as: 'NAME,...', means: 'only these habits' },
      story: { default: false, means: 'prints the story of every life, not only of the broken ones' },
    },
  })
  if (values === undefined) return
  const beganMs = performance.now()
  const onReport = (report: LifeReport): void => {
    const isBroken = report.breaches.length > 0
    if (!isBroken && !values.story) return
    say(
      `${report.habit}, again with: npm run habits -- --habit ${report.habit} --from ${report.seed} --count 1 --kills ${values.kills}`,
    )
    for (const { kind, attempt, words } of report.breaches) say(`  ${kind} in attempt ${attempt}: ${words}`)
    if (values.story) say(report.story)
  }
  const reports = await runHabits({
    ...{ habits: habitsNamed(values.habit), programOf: pretendedProgram, onReport },
    ...{ firstSeed: values.from, lives: values.count, kills: values.kills, jobs: values.jobs },
  })
  say(tableOf(reports))
  say(`${((performance.now() - beganMs) / 1_000).toFixed(0)} s`)
  if (reports.some(({ breaches }) => breaches.length > 0)) process.exitCode = 1
}

function habitsNamed(text: string): readonly Habit[] {
  if (text === '') return HABITS
  return text.split(',').map((name) => {
    const habit = HABITS.find((each) => each.name === name)
    if (habit !== undefined) return habit
    throw new Error(`There is no habit ${name}. There are: ${HABITS.map((each) => each.name).join(', ')}`)
  })
}

void main()
