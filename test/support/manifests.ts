import type { Manifest } from '../../core/job/checkpoint'

/** What the manifest of a checkpoint that is proven complete says of its state. */
export const COMPLETE = {
  revision: 1,
  state: 'complete',
  evidence: { kind: 'format', text: 'model.pt ends with its zip directory' },
  savedAtMs: 1,
} as const satisfies Partial<Manifest>

/** The manifest of a complete checkpoint of the first attempt, without files unless it has some. */
export function manifestOf(
  changes: Pick<Manifest, 'jobId' | 'step' | 'createdAtMs'> & Partial<Manifest>,
): Manifest {
  return {
    version: 1,
    attempt: 1,
    isStepKnown: true,
    ...COMPLETE,
    totalBytes: 0,
    files: [],
    resumePath: '.',
    ...changes,
  }
}
