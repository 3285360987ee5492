import { nameInMarkdown } from '../../core/markdown'
import { oneLine } from '../../core/one-line'
import { secretsNeeded, type JobSpec } from '../../core/job/job'
import type { JobInput } from '../../core/messages'
import { formatUsd } from '../../core/money/money'
import { formatBackendChoice } from '../../core/offer'
import { resourcesInWords, trainingTimeInWords } from '../../core/job/words'
import { formatInstant } from '../../core/time/time'

/** Longest summary: Temporal keeps 400 bytes, and a character may take four. */
const SUMMARY_CHARACTERS_MAX = 100
/** Temporal keeps 20,000 bytes of details; longer commands are cut. */
const COMMAND_CHARACTERS_MAX = 2_000

/** A job in one line: `char-lm: python3 train.py`. */
export function summaryOf({ name, run }: JobSpec): string {
  return cut(`${name}: ${oneLine(firstLineOf(run))}`, SUMMARY_CHARACTERS_MAX)
}

/** Summarises a job for Temporal's Web UI, which reads text between two dollar signs as a formula, except in code. */
export function summaryInMarkdown({ name, run }: JobSpec): string {
  const command = cut(oneLine(firstLineOf(run)), SUMMARY_CHARACTERS_MAX - name.length)
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
    ['reservation', spec.reservation === undefined ? undefined : `\`${spec.reservation}\``],
    ['reserved capacity', spec.usesReserved === false ? 'no' : undefined],
    ['price of an hour', most === undefined ? undefined : `at most \`${formatUsd(most)}\``],
    ['prefers', spec.optimize],
    ['duration, as estimated', trainingTimeInWords(spec)],
    ['family of work', spec.workFamily],
    ['deadline', spec.deadlineAtMs === undefined ? undefined : formatInstant(spec.deadlineAtMs)],
    // The budget is written as code, because of its dollar sign.
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
    cut(spec.run.trim(), COMMAND_CHARACTERS_MAX).replaceAll('```', "'''").split('\n').map(oneLine).join('\n'),
    '```',
    '',
    ...facts.flatMap(([name, value]) => (value === undefined ? [] : [`- ${name}: ${value}`])),
  ].join('\n')
}

function plain(text: string | undefined): string | undefined {
  return text === undefined ? undefined : nameInMarkdown(text)
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text
}
