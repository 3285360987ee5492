import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { CrucibleError } from '../client/errors'
import type { JobFields } from '../client/job/file'
import { scriptOf } from '../client/job/scripts'
import { lacksCuda } from '../core/accelerators'
import type { InferredSetting } from '../core/job/job'
import type { Analysis } from '../packages/analyzer/src/report'
import { fill, likelyGpuNeed } from '../packages/analyzer/src/fill'
import { analyzeCommand } from './analyzing'
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

/** Below this sureness, the job's owner knows better. */
const SURE_ENOUGH = 0.8

/** Throws `usage` if the job names an accelerator without CUDA and its program ends without CUDA. */
function refuseWithoutCuda(accelerators: readonly string[], { findings: { gpuUse } }: Analysis): void {
  if (gpuUse.value !== 'hard' || gpuUse.confidence < SURE_ENOUGH) return
  const named = accelerators.find((name) => lacksCuda(name))
  if (named === undefined) return
  const [place] = gpuUse.evidence
  const where = place === undefined ? 'The program' : `${place.file}:${place.line}`
  throw new CrucibleError('usage', `${where} needs CUDA, which ${named} lacks.`, {
    hint: 'Name an NVIDIA GPU; or add --no-analyze if the program runs on AWS Neuron.',
  })
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
