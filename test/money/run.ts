import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../core/time/time'
import type { AttemptResult } from './attempt'
import { Job } from './job'
import { CAPABILITIES } from './providers'
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

/** An attempt, and what it cost beyond what was left for it. */
export type Cap = Pick<AttemptResult, 'kind'> & AttemptResult['excess']

/** What came of a world. */
export interface Report {
  seed: number
  breaches: string[]
  story: string[]
  counts: ReadonlyMap<string, number>
  /** The jobs that their budget ended. */
  stopped: Stopped[]
  jobs: { reason: string }[]
  /** How the cap of each attempt held. */
  caps: Cap[]
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
  const ended = jobs.filter((job) => job.reason === 'budget-reached' && excessOf(job) === 0)
  return {
    seed,
    breaches,
    counts: world.counts,
    jobs,
    reckonings: world.reckonings,
    stopped: ended.map((job) => ({ ...job.stopped, isCalm: world.isCalm })),
    caps: jobs.flatMap(({ attempts }) => attempts.map(({ kind, excess }) => ({ kind, ...excess }))),
    story: jobs.flatMap((job) => job.inWords()),
  }
}

/** What the outages of a provider that only a call stops explain. */
function excessOf({ attempts }: Job): number {
  return attempts
    .filter(({ kind }) => CAPABILITIES[kind].billsUntil === 'terminate')
    .reduce(
      (sum, { excess, billMicroUsd, costMicroUsd }) =>
        sum + excess.microUsd + Math.max(0, billMicroUsd - costMicroUsd),
      0,
    )
}

function breachesOf(job: Job): string[] {
  const { id, budgetMicroUsd, billMicroUsd, spentMicroUsd, attempts } = job
  const wrong = [...job.breaches, ...attempts.flatMap(({ breaches }) => breaches)].map(
    (one) => `${id}: ${one}`,
  )
  if (billMicroUsd > budgetMicroUsd + excessOf(job))
    wrong.push(`${id}: the bill ${billMicroUsd} is over the budget ${budgetMicroUsd}`)
  if (
    spentMicroUsd > budgetMicroUsd + excessOf(job) &&
    attempts.every(({ basis, isEndTold }) => basis !== 'dearest' && isEndTold)
  )
    wrong.push(`${id}: the meter ${spentMicroUsd} is over the budget ${budgetMicroUsd}`)
  for (const attempt of attempts) wrong.push(...breachesOfMeter(attempt).map((one) => `${id}: ${one}`))
  // What is left does for no other machine, even at the dearest that it could be.
  if (job.reason === 'budget-reached' && job.stopped.leftMs >= 10 * MINUTE_MS)
    wrong.push(`${id}: ended with ${budgetMicroUsd - spentMicroUsd} of ${budgetMicroUsd} left`)
  return wrong
}

function breachesOfMeter(attempt: AttemptResult): string[] {
  const { costMicroUsd, billMicroUsd: bill, machines, basis, slackMs, dearestMicroUsd, stepMs } = attempt
  // Each machine is rounded up to a step of its own, in which the price may be another.
  const stepMicroUsd = machines * Math.ceil((dearestMicroUsd * stepMs) / HOUR_MS)
  const secondMicroUsd = Math.ceil((dearestMicroUsd * SECOND_MS) / HOUR_MS)
  const isLess = costMicroUsd + secondMicroUsd < bill
  const most = bill + stepMicroUsd + Math.ceil((dearestMicroUsd * slackMs) / HOUR_MS) + 1
  return [
    ...(isLess && !attempt.isLeftBehind ? [`metered ${costMicroUsd}, billed ${bill}`] : []),
    ...(basis !== 'dearest' && costMicroUsd > most
      ? [`metered ${costMicroUsd}, billed ${bill}, which explains ${most} at most`]
      : []),
  ]
}

function ofMonth({ limits, treasury }: World, jobs: Job[]): string[] {
  const billOf = (owner?: string): number =>
    jobs
      .filter((job) => owner === undefined || job.owner === owner)
      .reduce((sum, job) => sum + job.billMicroUsd - excessOf(job), 0)
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
