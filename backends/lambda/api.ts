/** The calls of Lambda Cloud's API v1 that are used here (docs.lambda.ai/api/cloud, version 1.10.0, read in November 2026). */
import { z } from 'zod'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { pause } from '../calls'
import { createHttpClient, HttpError, type HttpCall } from '../http'
import type { Limiter } from '../limiter'
import { codeOf } from './errors'

const region = z.looseObject({ name: z.string() })
const instanceType = z.looseObject({
  name: z.string(),
  gpu_description: z.string(),
  price_cents_per_hour: z.int().min(0),
  specs: z.looseObject({
    vcpus: z.number(),
    memory_gib: z.number(),
    storage_gib: z.number(),
    gpus: z.int().min(0),
  }),
})
const instanceTypes = z.record(
  z.string(),
  z.looseObject({ instance_type: instanceType, regions_with_capacity_available: z.array(region) }),
)
/** Form of an instance. Statuses may be added, so an unknown one is kept as it is. */
const instance = z.looseObject({
  id: z.string().min(1),
  status: z.string().min(1),
  region,
  instance_type: instanceType,
  tags: z
    .array(z.looseObject({ key: z.string(), value: z.string() }))
    .nullish()
    .transform((tags) => tags ?? []),
})
/** Form of the instance of one id: an answer about another one is of no use. */
function instanceOf(id: string): z.ZodType<LambdaInstance> {
  return instance.refine((answer) => answer.id === id, {
    path: ['id'],
    message: 'it is the id of another one',
  })
}
const sshKey = z.looseObject({ id: z.string(), name: z.string(), public_key: z.string() })
const fileSystem = z.looseObject({ id: z.string(), name: z.string(), region, is_in_use: z.boolean() })

export type LambdaInstance = z.output<typeof instance>
export type LambdaType = z.output<typeof instanceType>
export type TypesInStock = z.output<typeof instanceTypes>
export type SshKey = z.output<typeof sshKey>
type FileSystem = z.output<typeof fileSystem>

export interface LaunchRequest {
  region_name: string
  instance_type_name: string
  ssh_key_names: [string]
  name: string
  hostname: string
  user_data: string
  tags: { key: string; value: string }[]
  file_system_names: string[]
}

export interface LambdaApi {
  types(signal: AbortSignal): Promise<TypesInStock>
  /** Names of all Regions, in stock or not. */
  regions(signal: AbortSignal): Promise<string[]>
  /**
   * Everything that the account runs.
   *
   * @param onSend called when the request is sent, which may be after other requests
   */
  instances(signal: AbortSignal, onSend?: () => void): Promise<LambdaInstance[]>
  /** Returns an instance, including an ended one for a while; undefined for an unknown one. */
  instance(id: string, signal: AbortSignal): Promise<LambdaInstance | undefined>
  /** Sent once. Throws an `HttpError`. */
  launch(request: LaunchRequest, signal: AbortSignal): Promise<string[]>
  terminate(id: string, signal: AbortSignal): Promise<void>
  sshKeys(signal: AbortSignal): Promise<SshKey[]>
  addSshKey(key: { name: string; public_key: string }, signal: AbortSignal): Promise<SshKey>
  deleteSshKey(id: string, signal: AbortSignal): Promise<void>
  fileSystems(signal: AbortSignal): Promise<FileSystem[]>
  close(): Promise<void>
}

export interface ApiOptions {
  endpoint: string
  apiKey: string
  limiter: Limiter
}

export const ENDPOINT_DEFAULT = 'https://cloud.lambda.ai'

const CALL_MS = 30 * SECOND_MS
/** A launch may take longer than half a minute to answer. */
const LAUNCH_MS = 2 * MINUTE_MS
const USER_AGENT = 'crucible (+https://www.npmjs.com/package/crucible-ml)'

/** Number of tries of a read: other processes use the same account, so one that was too early is sent again. */
const READS_MAX = 4
const READ_AGAIN_MS = 2 * SECOND_MS

export function createApi({ endpoint, apiKey, limiter }: ApiOptions): LambdaApi {
  const http = createHttpClient({
    name: 'Lambda',
    baseUrl: `${endpoint}/api/v1`,
    userAgent: USER_AGENT,
    headers: () => ({ authorization: `Bearer ${apiKey}` }),
  })
  const data = <T extends z.ZodType>(schema: T) => z.looseObject({ data: schema })
  const change = async <T>(
    rank: 'ending' | 'launch' | 'other',
    call: Omit<HttpCall<{ data: T }>, 'timeoutMs'> & { timeoutMs?: number },
    signal: AbortSignal,
  ): Promise<T> => {
    const answer = await limiter.run(rank, signal, () => http.call({ timeoutMs: CALL_MS, ...call }, signal))
    return answer.data
  }
  const read = async <T extends z.ZodType>(
    path: string,
    schema: T,
    { signal, onSend }: { signal: AbortSignal; onSend?: (() => void) | undefined },
  ): Promise<z.output<T>> => {
    const call = { method: 'GET', path, answer: data(schema), timeoutMs: CALL_MS } as const
    for (let tries = 1; ; tries++) {
      try {
        const answer = await limiter.run('other', signal, () => {
          onSend?.()
          return http.call(call, signal)
        })
        return (answer as { data: z.output<T> }).data
      } catch (error) {
        if (!isTooEarly(error) || tries === READS_MAX) throw error
        await pause(error.facts.retryAfterMs ?? READ_AGAIN_MS, signal)
      }
    }
  }
  return {
    types: (signal) => read('/instance-types', instanceTypes, { signal }),
    regions: async (signal) => (await read('/regions', z.array(region), { signal })).map(({ name }) => name),
    instances: (signal, onSend) => read('/instances', z.array(instance), { signal, onSend }),
    instance: (id, signal) =>
      read(`/instances/${encodeURIComponent(id)}`, instanceOf(id), { signal }).catch(unlessAbsent(NO_SUCH)),
    launch: async (body, signal) => {
      const answer = data(z.looseObject({ instance_ids: z.array(z.string().min(1)).min(1) }))
      const call = { method: 'POST', path: '/instance-operations/launch', body, answer } as const
      return (await change('launch', { ...call, timeoutMs: LAUNCH_MS }, signal)).instance_ids
    },
    terminate: async (id, signal) => {
      const body = { instance_ids: [id] }
      const call = { method: 'POST', path: '/instance-operations/terminate', body } as const
      await change('ending', { ...call, answer: data(z.unknown()) }, signal).catch(unlessAbsent(NO_SUCH))
    },
    sshKeys: (signal) => read('/ssh-keys', z.array(sshKey), { signal }),
    addSshKey: (body, signal) =>
      change('other', { method: 'POST', path: '/ssh-keys', body, answer: data(sshKey) }, signal),
    deleteSshKey: async (id, signal) => {
      const call = { method: 'DELETE', path: `/ssh-keys/${encodeURIComponent(id)}` } as const
      await change('other', { ...call, answer: data(z.unknown()) }, signal).catch(unlessAbsent(NO_SUCH_KEY))
    },
    fileSystems: (signal) => read('/file-systems', z.array(fileSystem), { signal }),
    close: () => http.close(),
  }
}

function isTooEarly(error: unknown): error is HttpError {
  return error instanceof HttpError && error.facts.status === 429
}

/** Codes for a missing object. A 404 without them may come from an address that is not the API, and proves nothing. */
const NO_SUCH = ['global/object-does-not-exist']
/**
 * Codes for a missing key. Its id came from a list, so it is refused only if the key is gone. The documented code is `invalid-parameters`.
 */
const NO_SUCH_KEY = [...NO_SUCH, 'global/not-found', 'global/invalid-parameters']

function unlessAbsent(codes: string[]): (error: unknown) => undefined {
  return (error) => {
    if (error instanceof HttpError && codes.includes(codeOf(error) ?? '')) return undefined
    throw error
  }
}
