import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { lacksCuda } from '../../core/accelerators'
import type { Analysis } from '../../packages/analyzer/src/report'
import type * as thread from '../analysis/thread'
import { CrucibleError } from '../errors'
import { scriptOf } from './scripts'
import type { Submission } from './submit'

/** Below this sureness, the job's owner knows better. */
const SURE_ENOUGH = 0.8

/** Reads the program of a job that names an accelerator without CUDA. Throws `usage` if it ends without CUDA. */
export async function checkCuda({
  spec: { run, resources },
  directory,
}: Pick<Submission, 'spec' | 'directory'>): Promise<void> {
  const { accelerators = [] } = resources
  // The code of an earlier job was read when it was submitted.
  if (typeof directory !== 'string' || !accelerators.some(lacksCuda)) return
  const script = scriptOf(run)
  if (script !== undefined && !existsSync(join(directory, script))) return
  // Loaded here because few jobs name such an accelerator.
  const { analyzeCommand } = require('../analysis/thread') as typeof thread
  refuseWithoutCuda(accelerators, await analyzeCommand(directory, run))
}

/** Throws `usage` if the job names an accelerator without CUDA and its program ends without CUDA. */
export function refuseWithoutCuda(accelerators: readonly string[], { findings: { gpuUse } }: Analysis): void {
  if (gpuUse.value !== 'hard' || gpuUse.confidence < SURE_ENOUGH) return
  const named = accelerators.find(lacksCuda)
  if (named === undefined) return
  const [place] = gpuUse.evidence
  const where = place === undefined ? 'The program' : `${place.file}:${place.line}`
  throw new CrucibleError('usage', `${where} needs CUDA, which ${named} lacks.`, {
    hint: 'Name an NVIDIA GPU; or add --no-analyze (in TypeScript isAnalyzed: false) if the program runs on AWS Neuron.',
  })
}
