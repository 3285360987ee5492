import { nameInMarkdown } from '../core/markdown'
import { secretsNeeded, type JobSpec } from '../core/job'
import type { JobInput } from '../core/messages'
import { formatUsd } from '../core/money'
import { formatBackendChoice } from '../core/offer'
import { formatGpuMemory } from '../core/gpu-memory'
import { formatRange, type ResourceRequest } from '../core/resources'
import { formatDuration, formatInstant } from '../core/time'

/** Temporal keeps 400 bytes of a summary, and characters may be four of them. */
const SUMMARY_CHARACTERS_MAX = 100
/** Temporal keeps 20,000 bytes of details; longer commands are cut. */
const COMMAND_CHARACTERS_MAX = 2_000

/** A job in one line: `char-lm: python3 train.py`. */
export function summaryOf({ name, run }: JobSpec): string {
  return cut(`${name}: ${firstLineOf(run)}`, SUMMARY_CHARACTERS_MAX)
}

/** The same for Temporal's Web UI, which reads text between two dollar signs as a formula, except in code. */
export function summaryInMarkdown({ name, run }: JobSpec): string {
  const command = cut(firstLineOf(run), SUMMARY_CHARACTERS_MAX - name.length)
  return `${nameInMarkdown(name)}: \`${command.replaceAll('`', "'")}\``
}

function firstLineOf(run: string): string {
  return run.trim().split('\n')[0] ?? ''
}

/** The request in Markdown, for the job's page in Temporal's Web UI. */
export function detailsOf({ jobId, spec, owner, bundle, from, source, isRehearsal }: JobInput): string {
  const { priceMaxMicroUsdPerHour: most } = spec
  const facts: [string, string | undefined][] = [
    ['job', `\`${jobId}\``],
    ['owner', plain(owner)],
    ['from', source === undefined ? plain(from) : `${source.jobId}, step ${source.checkpoint.step}`],
    ['rehearsal', isRehearsal === true ? 'its machines are interrupted on purpose' : undefined],
    ['image', plain(spec.image)],
    ['resources', resourcesInWords(spec.resources)],
    ['interruptible', spec.isInterruptible ? 'yes' : 'no'],
    ['isolation', spec.isolation],
    ['accepts', spec.accepts?.join(', ')],
    ['where', [...spec.backends.map(formatBackendChoice), ...(spec.regions ?? [])].join(', ') || undefined],
    ['price of an hour', most === undefined ? undefined : `at most \`${formatUsd(most)}\``],
    ['prefers', spec.optimize],
    ['duration, as estimated', trainingTimeInWords(spec)],
    ['deadline', spec.deadlineAtMs === undefined ? undefined : formatInstant(spec.deadlineAtMs)],
    // As code, because of the dollar sign.
    ['budget', spec.budgetMicroUsd === undefined ? undefined : `\`${formatUsd(spec.budgetMicroUsd)}\``],
    ['secrets', secretsNeeded(spec).map(nameInMarkdown).join(', ') || undefined],
    [
      'code',
      bundle === null
        ? 'none'
        : `${bundle.files} ${bundle.files === 1 ? 'file' : 'files'}, \`${bundle.sha256.slice(0, 12)}\``,
    ],
  ]
  return [
    `### ${nameInMarkdown(spec.name)}`,
    '',
    '```sh',
    cut(spec.run.trim(), COMMAND_CHARACTERS_MAX).replaceAll('```', "'''"),
    '```',
    '',
    ...facts.flatMap(([name, value]) => (value === undefined ? [] : [`- ${name}: ${value}`])),
  ].join('\n')
}

/** `10h on A100` */
function trainingTimeInWords({ durationMs, durationOn }: JobSpec): string | undefined {
  if (durationMs === undefined) return undefined
  return [formatDuration(durationMs), durationOn].filter((word) => word !== undefined).join(' on ')
}

function plain(text: string | undefined): string | undefined {
  return text === undefined ? undefined : nameInMarkdown(text)
}

/** `2 GPUs, H100, 8+ cpus`; empty without a request. */
export function resourcesInWords(request: ResourceRequest): string | undefined {
  const { gpus, accelerators, cpus, memoryGiB, diskGiB, shmGiB } = request
  const gpuMemory = formatGpuMemory(request)
  const words = [
    gpus && `${formatRange(gpus)} GPUs`,
    accelerators && accelerators.length > 0 && accelerators.join(' or '),
    gpuMemory && `GPU memory ${gpuMemory}`,
    cpus && `${formatRange(cpus)} cpus`,
    memoryGiB && `memory ${formatRange(memoryGiB, ' GiB')}`,
    diskGiB && `disk ${formatRange(diskGiB, ' GiB')}`,
    shmGiB !== undefined && `shared memory ${shmGiB} GiB`,
  ].filter((word) => typeof word === 'string')
  return words.length === 0 ? undefined : words.join(', ')
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text
}
