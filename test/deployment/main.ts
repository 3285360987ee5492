/** `npm run deployment -- --help` (docs/guides/team-deployment.md). */
import { readOptions } from '../support/options'
import { drive, SERVICES } from './drive'
import { findPrograms } from './programs'

const say = (line: string): boolean => process.stdout.write(`${line}\n`)

async function main(): Promise<void> {
  const values = readOptions({
    name: 'deployment',
    about:
      'Runs the services of docker-compose.yml as processes, kills each while jobs run, backs up, and restores on a new host. ' +
      'It needs PostgreSQL, and Go to build the Temporal server the first time.',
    options: {
      jobs: { default: 3, means: 'how many jobs run at a time' },
      rounds: { default: 1, means: 'how often each service is killed' },
      steps: { default: 300, means: 'steps of 0.4 seconds of each job' },
      keep: { default: false, means: 'keeps the folders of both hosts' },
    },
  })
  if (values === undefined) return
  const kills = Array.from({ length: values.rounds }, () => SERVICES).flat()
  const { jobs, steps, keep } = values
  const wrong = await drive({ programs: await findPrograms(), jobs, steps, kills, isKept: keep, say })
  for (const line of wrong) say(line)
  say(
    wrong.length === 0
      ? `${jobs} jobs succeeded with the weights of an undisturbed run.`
      : `${wrong.length} failed`,
  )
  process.exitCode = wrong.length === 0 ? 0 : 1
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
