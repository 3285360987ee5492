import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { SECOND_MS, HOUR_MS } from '../../core/time'
import { WORTH_ANOTHER_MS } from '../../planner/decide'
import { Job } from './job'
import type { Reckoning } from './runner'
import { OWNERS, World } from './world'

/** A job that its budget ended. */
export interface Stopped {
  /** What part of it the job had cost. */
  usedPart: number
  /** For how long what was left would have done at the dearest price, and the whole budget. */
  leftMs: number
  wholeMs: number
  /** Nothing had failed. */
  isCalm: boolean
}

/** What came of a world. */
export interface Report {
  seed: number
  breaches: string[]
  story: string[]
  counts: ReadonlyMap<string, number>
  /** The jobs that their budget ended. */
  stopped: Stopped[]
  jobs: { reason: string }[]
  reckonings: Reckoning[]
}

/** Lets the jobs of one seed live, and compares what they cost with what the provider's bill says. */
export async function liveThrough(seed: number): Promise<Report> {
  const world = new World(seed)
  const jobs = Array.from(
    { length: world.dice.between(1, 4) },
    (_, i) => new Job(world, `job-${seed}-${i}`, world.dice.oneOf(OWNERS)),
  )
  await world.clock.runUntil(Promise.all(jobs.map((job) => job.live())))
  const breaches = [...jobs.flatMap(breachesOf), ...ofMonth(world, jobs)]
  const ended = jobs.filter(({ reason }) => reason === 'budget-reached')
  const isCalm = world.control.isNever && world.store.isNever && world.market.silence.isNever
  return {
    ...{ seed, breaches, counts: world.counts, jobs, reckonings: world.reckonings },
    stopped: ended.map((job) => ({ ...job.stopped, isCalm })),
    story: jobs.flatMap((job) => job.inWords()),
  }
}

function breachesOf(job: Job): string[] {
  const { id, budgetMicroUsd, billMicroUsd, spentMicroUsd, attempts } = job
  const wrong: string[] = []
  if (billMicroUsd > budgetMicroUsd)
    wrong.push(`${id}: the bill ${billMicroUsd} is over the budget ${budgetMicroUsd}`)
  if (
    spentMicroUsd > budgetMicroUsd &&
    attempts.every(({ basis, isEndTold }) => basis !== 'dearest' && isEndTold)
  )
    wrong.push(`${id}: the meter ${spentMicroUsd} is over the budget ${budgetMicroUsd}`)
  for (const { costMicroUsd, billMicroUsd: bill, basis, slackMs, dearestMicroUsd } of attempts) {
    // Each rounds up to a second of its own, in which the price may be another.
    const secondMicroUsd = Math.ceil((dearestMicroUsd * SECOND_MS) / HOUR_MS)
    if (costMicroUsd + secondMicroUsd < bill) wrong.push(`${id}: metered ${costMicroUsd}, billed ${bill}`)
    const most = bill + Math.ceil((dearestMicroUsd * (slackMs + SECOND_MS)) / HOUR_MS) + 1
    if (basis !== 'dearest' && costMicroUsd > most)
      wrong.push(`${id}: metered ${costMicroUsd}, billed ${bill}, which explains ${most} at most`)
  }
  // What is left does for no other machine, even at the dearest that it could be.
  if (job.reason === 'budget-reached' && job.stopped.leftMs >= WORTH_ANOTHER_MS)
    wrong.push(`${id}: ended with ${budgetMicroUsd - spentMicroUsd} of ${budgetMicroUsd} left`)
  return wrong
}

function ofMonth({ limits, treasury }: World, jobs: Job[]): string[] {
  const billOf = (owner?: string): number =>
    jobs
      .filter((job) => owner === undefined || job.owner === owner)
      .reduce((sum, { billMicroUsd }) => sum + billMicroUsd, 0)
  const caps: [string, number, number | undefined][] = [
    ['the month', billOf(), limits.monthMicroUsd],
    ...OWNERS.map((owner): [string, number, number | undefined] => [
      owner,
      billOf(owner),
      limits.owners[owner] ?? limits.ownerMicroUsd,
    ]),
  ]
  return [
    ...caps.flatMap(([name, bill, cap = Infinity]) =>
      bill > cap ? [`${name}: the bill ${bill} is over the limit ${cap}`] : [],
    ),
    ...(Object.keys(treasury.promised).length > 0 ? ['money is promised to jobs that are over'] : []),
  ]
}

/** Reckonings that the runner's own program disagrees with. */
export function disagreements(reckonings: readonly Reckoning[]): string[] {
  const python = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3'
  const runner = join(__dirname, '..', '..', 'runner')
  const { stdout, status, stderr } = spawnSync(
    python,
    ['-B', join(__dirname, 'python', 'reckon.py'), runner],
    {
      input: reckonings.map((each) => JSON.stringify(each)).join('\n'),
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  )
  if (status !== 0) throw new Error(`the runner's arithmetic cannot be asked: ${stderr}`)
  return stdout.split('\n').filter((line) => line !== '')
}
