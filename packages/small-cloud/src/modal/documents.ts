/** The documents of the gateway's HTTP contract, as Crucible's gateway defines them in its OpenAPI document. */
import { z } from 'zod'

export const key = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/)
export const volumeName = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/)
const tag = z.string().regex(/^[A-Za-z0-9._:/-]{1,255}$/)
const requirement = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?[A-Za-z0-9.,<>=!~* -]*$/)

const imageRequest = z.strictObject({
  reference: z
    .string()
    .regex(/^[A-Za-z0-9._:/@-]{1,255}$/)
    .nullish(),
  secret: z.string().nullish(),
  requirements: z.array(requirement).max(500).default([]),
})

export const jobRequest = z.strictObject({
  owner: key,
  tags: z
    .record(tag, tag)
    .default({})
    .refine((tags) => Object.keys(tags).length <= 8, 'has more than 8 tags'),
  image: imageRequest.prefault({}),
  command: z.array(z.string().max(16_384)).min(1).max(16),
  env: z.record(z.string(), z.string()).default({}),
  gpu: z
    .string()
    .regex(/^[A-Za-z0-9+-]+!?(:[1-8])?$/)
    .nullish(),
  cpu: z.number().positive().max(64),
  memory_mib: z.int().min(128).max(344_064),
  timeout_s: z.int().min(1).max(86_400),
  volumes: z.record(z.string().regex(/^\/[A-Za-z0-9/._-]+$/), volumeName).default({}),
  secrets: z.array(z.string()).default([]),
  send_by_ms: z.int(),
})
export type JobRequest = z.output<typeof jobRequest>

export interface Job {
  key: string
  phase: 'launching' | 'running' | 'ended' | 'cancelled' | 'launch_failed' | 'launch_lost'
  owner: string | null
  tags: Record<string, string>
  sandbox_id: string | null
  exit_code: number | null
  error: { type: string; message: string } | null
  accepted_at_ms: number | null
  running_at_ms: number | null
  ended_at_ms: number | null
}
