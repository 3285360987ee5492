import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { analyzeCommand } from '../client/analysis/thread'
import { refuseWithoutCuda } from '../client/job/cuda'
import type { JobFields } from '../client/job/file'
import { scriptOf } from '../client/job/scripts'
import type { InferredSetting } from '../core/job/job'
import { fill, likelyGpuNeed } from '../packages/analyzer/src/fill'
import type { Cli } from './cli'

interface FilledJob {
  fields: JobFields
  settings: InferredSetting[]
}

/**
 * Reads the program that a command starts in a folder, and fills in settings that the job leaves open; each one is printed with its reason.
 * A command that starts no program of a known library changes nothing.
 * @param isAsked whether a person at a terminal is asked about GPUs that the program only probably needs
 */
export async function fillFromProgram(
  cli: Cli,
  fields: JobFields,
  {
    run,
    directory,
    accelerators = [],
    isAsked = false,
  }: { run: string; directory: string; accelerators?: readonly string[] | undefined; isAsked?: boolean },
): Promise<FilledJob> {
  const script = scriptOf(run)
  // The checks before a submission name a missing folder or script.
  if (script !== undefined && !existsSync(join(directory, script))) return { fields, settings: [] }
  const analysis = await analyzeCommand(directory, run)
  refuseWithoutCuda(accelerators, analysis)
  const likely = likelyGpuNeed(fields, analysis)
  const isGpuWanted =
    likely !== undefined && isAsked && (await cli.confirm(`${likely}. Ask for GPUs?`)) === true
  const target = pathFromHere(join(directory, analysis.entry ?? ''))
  const { settings, hints, ...filled } = fill(fields, analysis, { target, isGpuWanted })
  for (const setting of settings) cli.out.note(inWords(setting))
  for (const hint of hints) cli.out.note(cli.out.paintNote.yellow(hint))
  return { fields: filled.fields, settings }
}

/** A path for a command typed here. */
export function pathFromHere(path: string): string {
  const here = relative(process.cwd(), path)
  return here.startsWith('..') ? path : here
}

/** `Set from train.py:12: resources.gpus 1, because the program stops without a GPU.` */
function inWords({ field, value, reason, from }: InferredSetting): string {
  return `Set${from === null ? '' : ` from ${from}`}: ${field} ${value}, because ${reason}.`
}
