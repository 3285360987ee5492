import { harness, nothingAround, type Case, type Drawn, type Report } from '../kit/harness'
import { drive, SERVICES } from './drive'
import { findPrograms } from './programs'

const OPTIONS = {
  crowd: { default: 3, means: 'how many jobs run on it' },
  rounds: { default: 1, means: 'how often each service is killed' },
  steps: { default: 300, means: 'steps of 0.4 seconds of each job' },
  keep: { default: false, means: 'keeps the folders of both hosts' },
}

/**
 * The services of docker-compose.yml as processes: each is killed while jobs run, then a backup is restored on a new host. It needs PostgreSQL,
 * and Go to build the Temporal server the first time.
 */
export const DEPLOYMENT = harness({
  jobs: 1,
  options: OPTIONS,
  around: nothingAround,
  draw: () => [{ name: 'the deployment of a team', again: [] }],
  live: async (_: Case, _place: undefined, values: Drawn<typeof OPTIONS>): Promise<Report> => {
    const { crowd: jobs, rounds, steps, keep } = values
    const kills = Array.from({ length: rounds }, () => SERVICES).flat()
    const say = (line: string): boolean => process.stdout.write(`${line}\n`)
    const breaches = await drive({ programs: await findPrograms(), jobs, steps, kills, isKept: keep, say })
    return { state: `${jobs} jobs ended`, breaches, story: [] }
  },
})
