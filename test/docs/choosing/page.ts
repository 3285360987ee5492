import { join } from 'node:path'
import { catalogPrices } from '../../../backends/ec2/market/catalog'
import { capabilitiesOf as localCapabilitiesOf } from '../../../backends/local'
import { CAPABILITIES as MODAL_CAPABILITIES } from '../../../backends/modal'
import type { Capabilities } from '../../../core/capabilities'
import type { JobSpec } from '../../../core/job/job'
import { formatUsd } from '../../../core/money/money'
import type { CapacityType, Offer } from '../../../core/offer'
import type { BackendAnswer, Placement } from '../../../core/job/plan'
import { formatDuration, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { DEFAULT_TIMING } from '../../../core/time/timing'
import { makePlan } from '../../../planner/plan/plan'
import {
  catalogAnswers,
  EC2_CAPABILITIES,
  EC2_SPOT_USD,
  LAMBDA_CAPABILITIES,
  LAMBDA_READ_MS,
  MODAL_READ_MS,
} from '../../planner/catalogs'
import { SPEC } from '../../planner/wishes'

/** The page about backends, from the price lists and the planner: `npm run choosing` writes it. */

export const CHOOSING_PAGE = join(__dirname, '../../../docs/guides/choosing-a-backend.md')

const NOW_MS = Date.UTC(2026, 10, 25)
const MACHINES: readonly [accelerator: string, count: number][] = [
  ['T4', 1],
  ['L4', 1],
  ['A10G', 1],
  ['H100', 1],
  ['A100', 8],
  ['H100', 8],
]
const DURATIONS_MS = [5 * MINUTE_MS, HOUR_MS, 10 * HOUR_MS, 100 * HOUR_MS]
const KINDS = {
  fixed: { isInterruptible: false, accepts: ['preemptible-on-demand'] },
  resuming: { isInterruptible: true },
  soon: { isInterruptible: true, optimize: 'time' },
} as const satisfies Record<string, Partial<JobSpec>>
type Kind = keyof typeof KINDS

interface Cell {
  durationMs: number
  first: Placement
}

interface Line {
  machine: string
  cells: Cell[]
}

/** For each machine and duration the first place of the ranking. */
async function linesOf(kind: Kind): Promise<Line[]> {
  return Promise.all(
    MACHINES.map(async ([accelerator, count]) => {
      const resources = { gpus: { min: count, max: count }, accelerators: [accelerator] }
      const answers = await catalogAnswers(resources)
      const cells = DURATIONS_MS.map((durationMs): Cell => {
        const spec: JobSpec = {
          ...SPEC,
          resources,
          durationMs,
          durationOn: accelerator,
          checkpoint: { directory: 'checkpoints', everyMs: 10 * MINUTE_MS },
          ...KINDS[kind],
          accepts: ['preemptible-on-demand'],
        }
        return { durationMs, first: firstOf(spec, answers) }
      })
      return { machine: `${count}x ${accelerator}`, cells }
    }),
  )
}

function firstOf(spec: JobSpec, answers: BackendAnswer[]): Placement {
  const { placements } = makePlan({
    spec,
    answers,
    timing: DEFAULT_TIMING,
    silentBackends: [],
    avoid: [],
    nowMs: NOW_MS,
    isFirst: true,
  })
  return placements[0]!
}

const TYPE_WORDS: Readonly<Record<CapacityType, string>> = {
  spot: ' spot',
  'on-demand': '',
  reserved: ' reserved',
}
const BACKEND_WORDS: Readonly<Record<string, string>> = { ec2: 'EC2', lambda: 'Lambda', modal: 'Modal' }
const nameOf = ({ offer }: Placement): string =>
  `${BACKEND_WORDS[offer.backend]}${offer.backend === 'ec2' && offer.capacityType === 'on-demand' ? ' on demand' : TYPE_WORDS[offer.capacityType]}`

function costTable(lines: readonly Line[], figure: (placement: Placement) => string): string {
  return table(
    ['machine', ...DURATIONS_MS.map(formatDuration)],
    lines.map(({ machine, cells }) => [
      machine,
      ...cells.map(({ first }) => `${nameOf(first)} ${figure(first)}`),
    ]),
  )
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

/** `EC2 spot in 20 of 24, Lambda in 4` */
function winners(lines: readonly Line[], keep: (cell: Cell) => boolean = () => true): string {
  const names = lines.flatMap(({ cells }) => cells.filter(keep).map(({ first }) => nameOf(first)))
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count], index) => `${name} in ${count}${index === 0 ? ` of ${names.length}` : ''}`)
    .join(', ')
}

const usd = ({ costMicroUsd }: Placement): string => formatUsd(costMicroUsd)
const time = ({ durationMs }: Placement): string => formatDuration(durationMs)
const dayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10)

interface Backend {
  name: string
  capabilities: Capabilities
  offers: Offer[]
}

const IMAGE_WORDS: Readonly<Record<Capabilities['imageRunner'], string>> = {
  runner: 'yes, with Docker',
  provider: 'yes, by the provider',
  none: 'no',
}
const PRICE_WORDS: Readonly<Record<Capabilities['price'], string>> = {
  live: 'live',
  static: 'from a table',
  configured: 'as configured',
}

const FEATURES: readonly [string, (backend: Backend) => string][] = [
  ['capacity types', ({ capabilities }) => capabilities.capacityTypes.join(', ')],
  ['container images', ({ capabilities }) => IMAGE_WORDS[capabilities.imageRunner]],
  ['median boot', ({ capabilities }) => formatDuration(capabilities.boot!.middleMs)],
  ['prices', ({ capabilities }) => PRICE_WORDS[capabilities.price]],
  ['billed in steps of', ({ offers }) => stepsOf(offers)],
  [
    'billing ends',
    ({ capabilities }) => (capabilities.billsUntil === 'exit' ? 'with the job' : 'at our call'),
  ],
  ['launches queue', ({ capabilities }) => (capabilities.queues === true ? 'yes, unbilled' : 'no')],
  [
    'takes machines back',
    ({ capabilities, offers }) => {
      const isNoticed = capabilities.notice === undefined ? 'without notice' : 'with notice'
      if (capabilities.capacityTypes.includes('spot')) return `spot, ${isNoticed}`
      return offers.some((one) => one.isPreemptible) ? `with GPUs, ${isNoticed}` : 'no'
    },
  ],
  ['longest run of a machine', ({ offers }) => longestOf(offers)],
  ['hardware', ({ offers }) => offers[0]?.isolation ?? 'dedicated'],
]

function stepsOf([first]: Offer[]): string {
  return first === undefined ? '-' : formatDuration(first.billedInStepsOfMs ?? 1_000)
}

function longestOf(offers: Offer[]): string {
  const limits = offers.flatMap(({ runMsMax }) => runMsMax ?? [])
  return limits.length === 0 ? 'any' : formatDuration(Math.min(...limits))
}

async function featureTable(): Promise<string> {
  const answers = await catalogAnswers({ gpus: { min: 1 } })
  const offersOf = (name: string): Offer[] => answers.find(({ backend }) => backend === name)!.offers
  const local = localCapabilitiesOf({ capacityTypes: ['on-demand'], hasContainers: true })
  const backends: Backend[] = [
    { name: 'local', capabilities: local, offers: [] },
    { name: 'ec2', capabilities: EC2_CAPABILITIES, offers: offersOf('ec2') },
    { name: 'lambda', capabilities: LAMBDA_CAPABILITIES, offers: offersOf('lambda') },
    { name: 'modal', capabilities: MODAL_CAPABILITIES, offers: offersOf('modal') },
  ]
  return table(
    ['', ...backends.map(({ name }) => `\`${name}\``)],
    FEATURES.map(([title, of]) => [title, ...backends.map(of)]),
  )
}

export async function choosingPage(): Promise<string> {
  const [fixed, resuming, soon] = await Promise.all([linesOf('fixed'), linesOf('resuming'), linesOf('soon')])
  const isMinutes = ({ durationMs }: Cell): boolean => durationMs < HOUR_MS
  return `# Choosing a backend

\`crucible plan\` answers this for your job at the prices of the moment. This page shows what the same arithmetic gives for typical jobs at dated list
prices; it is made by \`npm run choosing\` and changes when prices or rules change.

<!-- choosing -->

## Decision flow

1. A machine of your own costs nothing: \`local\` is first whenever it is large enough.
2. The job saves checkpoints and resumes (\`interruptible: true\`). Cheapest of the cases below: ${winners(resuming)}.
3. It must not be interrupted. Cheapest for minutes: ${winners(fixed, isMinutes)}; for hours and days: ${winners(fixed, (cell) => !isMinutes(cell))}.
4. It must be done soon (\`optimize: time\`). Soonest for minutes: ${winners(soon, isMinutes)}; for hours and days: ${winners(soon, (cell) => !isMinutes(cell))}.
5. A budget must hold even while the control plane is down: a backend whose billing ends with the job. For others, the job must accept that
   (\`accept: billed-until-terminated\`).
6. Capacity must be certain (\`optimize: reliability\`): a [reservation or Capacity Block](../reference/ec2-reserved.md) comes first, and costs
   money while it is idle.

## Cheapest, not interruptible

Cost of the whole job by duration, with boot and billing steps. Modal's GPUs count although Modal may take them back (\`accept: preemptible-on-demand\`).

${costTable(fixed, usd)}

## Cheapest, interruptible

Interruptions, new starts and repeated work are counted; a checkpoint every 10 minutes.

${costTable(resuming, usd)}

## Soonest

From the order to the end, with everything in stock.

${costTable(soon, time)}

## Features

${await featureTable()}

## Sources of the prices

| prices | as of |
| --- | --- |
| EC2 on demand, us-east-1, with a disk of 100 GiB | ${dayOf(catalogPrices('us-east-1').observedAtMs)}, AWS price list |
| EC2 spot, us-east-1 (${Object.keys(EC2_SPOT_USD).join(', ')}) | SkyPilot catalog, median of the zones; 2025 |
| Lambda | ${dayOf(LAMBDA_READ_MS)} |
| Modal, with 4 vCPUs and 16 GiB for each GPU | ${dayOf(MODAL_READ_MS)} |

Spot prices of other types are missing there, so EC2 has only its on-demand price for them in the tables above.

<!-- /choosing -->
`
}
