/** The schemas for checkpoints in the runner's documents (docs/reference/runner-protocol-checkpoints.md). */
import { z } from 'zod'
import {
  CHECKPOINT_PART_BYTES,
  CHECKPOINT_STATES,
  checkpointId,
  EVIDENCE_KINDS,
  RESTORE_OUTCOMES,
  type Checkpoint,
  type Manifest,
  type Restores,
} from '../core/job/checkpoint'
import type { Outputs } from '../core/documents'
import { fromOne, innerPath, lowerCaseWords, sha256, whole } from './document-fields'

export const checkpoint: z.ZodType<Checkpoint> = z
  .object({ id: z.string(), step: whole, attempt: whole, isStepKnown: z.boolean().optional() })
  .refine(
    ({ id, step, attempt }) => id === checkpointId(step, attempt),
    'must have an id that names step and attempt',
  )

export const checkpointNews = {
  restoredBecause: z.string().optional(),
  checkpointState: z.enum(CHECKPOINT_STATES).optional(),
  warning: z
    .object({
      kind: lowerCaseWords,
      text: z.string(),
      sinceMs: whole,
    })
    .nullable()
    .optional(),
}

export const restores: z.ZodType<Restores> = z.object({
  version: z.literal(1),
  attemptId: z.string(),
  restores: z.array(
    z.object({
      checkpoint,
      revision: fromOne,
      state: z.enum(CHECKPOINT_STATES),
      why: z.string(),
      atMs: whole,
      outcome: z.enum(RESTORE_OUTCOMES),
      message: z.string().nullable(),
    }),
  ),
})

/** Within the job's checkpoint folder, in the files of a checkpoint: `<id>/files/<path>` or `<id>/files.<revision>/<path>`. */
const storedAt = innerPath.regex(
  /^\d{12}-(?:0|[1-9]\d*)\/files(?:\.[1-9]\d*)?\/./,
  'must name a file of a checkpoint of the job',
)

const subMs = whole.max(999_999)

const manifestFile = z
  .object({
    path: innerPath,
    sizeBytes: whole,
    parts: z.array(sha256),
    digest: sha256,
    mode: whole,
    storedAt: storedAt.optional(),
    modifiedAtMs: whole.optional(),
    modifiedNs: subMs.optional(),
    isOlder: z.boolean().optional(),
    linkedTo: innerPath.optional(),
  })
  .refine((file) => file.parts.length === Math.ceil(file.sizeBytes / CHECKPOINT_PART_BYTES), {
    path: ['parts'],
    error: 'must have one digest for each part of the size',
  })

const manifestLink = z.object({ path: innerPath, target: z.string() }).refine(staysInside, {
  path: ['target'],
  error: 'must stay inside the checkpoint',
})

const treeEntry = z.object({
  path: innerPath,
  mode: whole,
  modifiedAtMs: whole.optional(),
  modifiedNs: subMs.optional(),
})

export const outputs: z.ZodType<Outputs> = z.object({
  version: z.literal(1),
  files: z.array(treeEntry),
  folders: z.array(treeEntry),
  links: z.array(manifestLink),
})

export const manifest: z.ZodType<Manifest> = z.object({
  version: z.literal(1),
  jobId: z.string(),
  attempt: whole,
  revision: fromOne,
  state: z.enum(CHECKPOINT_STATES),
  evidence: z.object({ kind: z.enum(EVIDENCE_KINDS), text: z.string() }),
  step: whole,
  isStepKnown: z.boolean(),
  epoch: whole.optional(),
  createdAtMs: whole,
  savedAtMs: whole,
  saveMs: whole.optional(),
  totalBytes: whole,
  uploadMs: whole.optional(),
  files: z.array(manifestFile),
  links: z.array(manifestLink).optional(),
  folders: z.array(treeEntry).optional(),
  copiedFrom: z.object({ jobId: z.string(), checkpoint: z.string() }).optional(),
  resumePath: z.union([z.literal('.'), innerPath], 'must be "." or a relative path without ".."'),
  sha256: sha256.optional(),
})

/** Whether a link points below the folder that its own path is relative to. */
function staysInside({ path, target }: { path: string; target: string }): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false
  let depth = path.split('/').length - 1
  for (const segment of target.split('/')) {
    if (segment === '' || segment === '.') continue
    depth += segment === '..' ? -1 : 1
    if (depth < 0) return false
  }
  return true
}
