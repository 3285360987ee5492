import { mkdtemp, mkdir, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { CrucibleError, EXIT_CODES } from '../../client/errors'
import { keepRehearsed } from '../../client/job/rehearsed'
import { secretsOf } from '../../client/job/secrets'
import type { Submission } from '../../client/job/submit'
import type { JobSpec } from '../../core/job/job'
import { formatDuration } from '../../core/time/time'
import type { Change } from '../../rehearse/advice'
import { judge, type Check, type Report } from '../../rehearse/judge'
import { INTERRUPTIONS_DEFAULT } from '../../rehearse/moments'
import { rehearse } from '../../rehearse/rehearsal'
import { Stage } from '../../rehearse/stage'
import type { Cli } from '../cli'
import type { RehearseOptions } from '../commands/job/rehearse'

/** Rehearses a job on this machine. */
export async function rehearseHere(
  cli: Cli,
  { spec, directory = null }: Submission,
  { for: forMs, most: mostMs, interruptions = INTERRUPTIONS_DEFAULT, keep }: RehearseOptions,
): Promise<void> {
  const secrets = secretsOf(cli.context(), spec)
  const folder = await folderFor(keep)
  const now = (): number => cli.now()
  cli.out.note(`Rehearsing ${spec.name} on this machine for at most ${formatDuration(forMs)}.`)
  let stage: Stage | undefined
  try {
    stage = await Stage.open({ folder, environment: cli.environment, spec, directory, secrets, now })
    const seen = await rehearse({
      host: stage,
      directory: spec.checkpoint.directory ?? null,
      forMs,
      mostMs,
      interruptions,
      now,
      say: (words) => cli.out.note(words),
      signal: cli.interruption(),
    })
    conclude(cli, { spec, report: judge(seen) })
  } catch (error) {
    if (!cli.interruption().aborted) throw error
  } finally {
    await stage?.close()
    if (keep === undefined) await rm(folder, { recursive: true, force: true })
    else cli.out.note(`Kept in ${folder}.`)
  }
}

interface Concluded {
  spec: JobSpec
  report: Report
  /** Additional fields of the JSON. */
  beside?: object
}

/** Prints the findings, and saves those that `plan` and `submit` use. */
export function conclude(cli: Cli, { spec, report, beside = {} }: Concluded): void {
  const { survives, summary, checkpoint } = report
  keepRehearsed(cli.context().config.home, spec, {
    version: 1,
    name: spec.name,
    atMs: cli.now(),
    survives,
    summary,
    totalBytes: checkpoint === null ? undefined : checkpoint.sizeBytes,
    saveMs: checkpoint?.saveMs == null ? undefined : checkpoint.saveMs,
  })
  if (!survives) cli.exitCode = EXIT_CODES['not-survived']
  cli.out.json({ name: spec.name, ...report, ...beside })
  show(cli, report)
}

async function folderFor(keep: string | undefined): Promise<string> {
  if (keep === undefined) return mkdtemp(join(tmpdir(), 'crucible-rehearsal-'))
  const folder = resolve(keep)
  await mkdir(folder, { recursive: true })
  if ((await readdir(folder)).length === 0) return folder
  throw new CrucibleError('usage', `The folder ${folder} is not empty.`, {
    hint: 'Choose a new folder for --keep.',
  })
}

const TABLE_WIDTH = 80
/** Column at which the details begin. */
const DETAILS_AT = 28

/** Broken between words, so that no line is wider. */
function wrapped(text: string, width: number): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)!} ${word}`
    if (lines.length > 0 && longer.length <= width) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines.join('\n')
}

const WORDS: Readonly<Record<Check['outcome'], string>> = {
  good: 'ok',
  warning: 'warning',
  bad: 'FAILS',
  unknown: 'unknown',
}

function show({ out }: Cli, { survives, summary, checks, changes }: Report): void {
  const { paint } = out
  const colours = { good: paint.green, warning: paint.yellow, bad: paint.red, unknown: paint.dim }
  out.table(
    ['CHECK', 'RESULT', 'DETAILS'],
    checks.map(({ name, outcome, text }) => [
      name,
      colours[outcome](WORDS[outcome]),
      wrapped(text, Math.min(out.width, TABLE_WIDTH) - DETAILS_AT),
    ]),
  )
  if (changes.length > 0) {
    out.line()
    out.line('What to change:')
    for (const [index, change] of changes.entries()) showChange(out, index + 1, change)
  }
  out.line()
  showWrapped(out, summary, survives ? paint.green : paint.red)
}

export function showWrapped(out: Cli['out'], text: string, paint = (plain: string): string => plain): void {
  out.block(paint(wrapped(text, Math.min(out.width, TABLE_WIDTH))))
}

/** Indent of a change, below its number. */
const CHANGE_AT = 5
const YAML_AT = 9

function showChange(out: Cli['out'], number: number, { text, yaml }: Change): void {
  const indent = (lines: string, by: number): string => lines.replaceAll('\n', `\n${' '.repeat(by)}`)
  const words = yaml === null ? text : `${text} Add to the job file:`
  const width = Math.min(out.width, TABLE_WIDTH) - CHANGE_AT
  out.block(`  ${number}. ${indent(wrapped(words, width), CHANGE_AT)}`)
  if (yaml !== null) out.block(`${' '.repeat(YAML_AT)}${indent(yaml, YAML_AT)}`)
}
