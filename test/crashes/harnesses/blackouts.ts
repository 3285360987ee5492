import { SECOND_MS } from '../../../core/time/time'
import { PROVIDER_NAMES, providerOption, providersNamed } from '../../clouds/providers'
import { harness, seeded, type Case, type Row } from '../../kit/harness'
import { withServer } from '../../kit/server'
import { liveThroughBlackout, type BlackoutReport } from '../blackout'
import { blackoutOf, OUTAGES, type BlackoutPlan, type Outage } from '../blackout-plan'
import { ATTACHED_WITHIN_MS, seconds } from '../checks'
import { countsOf } from './table'

const OUTAGE_WORDS: Readonly<Record<Outage, string>> = {
  server: 'blackouts of the server',
  all: 'blackouts of the server and all workers',
  restarts: 'rows of restarts of the server',
}

/** Jobs at work whose Temporal server, and all workers with it, goes away for an hour, on a scale. */
export const BLACKOUTS = harness({
  seeds: 8,
  jobs: 2,
  options: {
    provider: providerOption('they take turns'),
    crowd: { default: 25, means: 'how many jobs are in one blackout' },
    hour: { default: 60, means: 'seconds that stand for an hour' },
  },
  around: (_, use) => withServer(() => use(undefined)),
  draw: ({ seeds, provider, crowd, hour }) =>
    seeded(seeds, (seed): { plan: BlackoutPlan } => ({
      plan: blackoutOf(seed, {
        providers: providersNamed(provider),
        jobs: crowd,
        hourMs: hour * SECOND_MS,
      }),
    })),
  live: ({ plan }: Case & { plan: BlackoutPlan }) => liveThroughBlackout(plan),
  table,
})

function table(reports: readonly BlackoutReport[]): Row[] {
  const jobs = reports.flatMap((report) => report.jobs)
  const after = reports.flatMap(({ attachedAfterMs }) => attachedAfterMs).sort((a, b) => a - b)
  const count = (isMeant: (plan: BlackoutPlan) => boolean): number =>
    reports.filter(({ plan }) => isMeant(plan)).length
  return [
    ...OUTAGES.map((outage): Row => [OUTAGE_WORDS[outage], count((plan) => plan.outage === outage)]),
    ...PROVIDER_NAMES.map((name): Row => [
      `blackouts at ${name}`,
      count((one) => one.provider.name === name),
    ]),
    ['jobs', jobs.length],
    ['attempts at work when the server was back', after.length],
    ['re-attached after, median', seconds(after[Math.floor(after.length / 2)] ?? 0)],
    ['re-attached after, 95 of 100', seconds(after[Math.floor(after.length * 0.95)] ?? 0)],
    ['re-attached after, the last', seconds(after.at(-1) ?? 0)],
    [
      `re-attached later than ${seconds(ATTACHED_WITHIN_MS)}`,
      after.filter((ms) => ms > ATTACHED_WITHIN_MS).length,
    ],
    ...countsOf(jobs),
  ]
}
