/** Used fields of the gateway's answers (`gateway/openapi.json`). Unknown fields are kept. */
import { z } from 'zod'

/** Version of the HTTP contract that this code speaks. */
export const API = 1

export const health = z.looseObject({
  api: z.int(),
  features: z.array(z.string()).default([]),
  sdk: z.string(),
  environment: z.string(),
  allowed: z.looseObject({
    registries: z.array(z.string()),
    secrets: z.array(z.string()),
    volumes: z.string(),
  }),
})

export const rates = z.looseObject({ observed_at_ms: z.int(), usd: z.record(z.string(), z.string()) })

/**
 * Form of a job. A phase of a later gateway is kept as it is.
 * @internal A test compares it with the gateway's document.
 */
export const job = z.looseObject({
  key: z.string().min(1),
  phase: z.string().min(1),
  owner: z.string().nullish(),
  tags: z.record(z.string(), z.string()).default({}),
  sandbox_id: z.string().min(1).nullish(),
  exit_code: z.int().nullish(),
  error: z.looseObject({ type: z.string(), message: z.string() }).nullish(),
  accepted_at_ms: z.int().nullish(),
  running_at_ms: z.int().nullish(),
  ended_at_ms: z.int().nullish(),
})

/** Form of the job of one key: an answer about another job is of no use. */
export function jobOf(key: string): z.ZodType<Job> {
  return job.refine((answer) => answer.key === key, {
    path: ['key'],
    message: 'it is the key of another job',
  })
}

export const jobList = z.looseObject({
  items: z.array(
    z.looseObject({
      key: z.string().min(1),
      sandbox_id: z.string().nullish(),
      tags: z.record(z.string(), z.string()),
    }),
  ),
})

export const volumeList = z.looseObject({
  items: z.array(z.looseObject({ name: z.string(), created_at_ms: z.int(), used_at_ms: z.int().nullish() })),
})

export const logTail = z.looseObject({ lines: z.array(z.string()) })

export type Health = z.output<typeof health>
export type Rates = z.output<typeof rates>
export type Job = z.output<typeof job>
export type Listed = z.output<typeof jobList>['items'][number]
export type Volume = z.output<typeof volumeList>['items'][number]

/** Request of one launch. */
export interface JobRequest {
  owner: string
  tags: Record<string, string>
  image: { reference: string | null; secret: string | null; requirements: string[] }
  command: string[]
  env: Record<string, string>
  gpu: string | null
  cpu: number
  memory_mib: number
  timeout_s: number
  volumes: Record<string, string>
  secrets: string[]
  send_by_ms: number
}
