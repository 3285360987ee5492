/** The calls of the gateway in the user's workspace. */
import { z } from 'zod'
import { SECOND_MS } from '../../core/time/time'
import { createHttpClient, HttpError, type HttpCall } from '../http'
import {
  health,
  jobList,
  jobOf,
  logTail,
  rates,
  volumeList,
  type Health,
  type Job,
  type JobRequest,
  type Listed,
  type Rates,
  type Volume,
} from './documents'
import { problemOf } from './errors'

/** Each call is sent once, and throws an `HttpError`. */
export interface ModalApi {
  health(signal: AbortSignal): Promise<Health>
  rates(signal: AbortSignal): Promise<Rates>
  submit(key: string, request: JobRequest, signal: AbortSignal): Promise<Job>
  /** Returns a job; undefined for a key that neither the gateway nor Modal knows. */
  job(key: string, signal: AbortSignal): Promise<Job | undefined>
  /** Cancels a key. Afterwards nothing of the key starts, and a running Sandbox is being ended. */
  cancel(key: string, signal: AbortSignal): Promise<void>
  /** Returns waiting and running jobs, as Modal lists them. */
  jobs(owner: string, signal: AbortSignal): Promise<Listed[]>
  logs(key: string, signal: AbortSignal): Promise<string[]>
  volumes(prefix: string, signal: AbortSignal): Promise<Volume[]>
  deleteVolume(name: string, signal: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface ApiOptions {
  url: string
  token: { key: string; secret: string }
}

/** A gateway that nothing has called for two minutes starts first, which takes some seconds. */
const CALL_MS = 60 * SECOND_MS
/** Time limit for calls that people wait for, to a gateway that was called a moment ago. */
const SUBMIT_MS = 30 * SECOND_MS
const LOG_LINES = 200
const USER_AGENT = 'crucible (+https://www.npmjs.com/package/crucible-ml)'

export function createApi({ url, token }: ApiOptions): ModalApi {
  const http = createHttpClient({
    name: 'The Modal gateway',
    baseUrl: `${url}/v1`,
    userAgent: USER_AGENT,
    headers: () => ({ 'modal-key': token.key, 'modal-secret': token.secret }),
  })
  const get = <T>(path: string, answer: z.ZodType<T>, signal: AbortSignal): Promise<T> =>
    http.call({ method: 'GET', path, answer, timeoutMs: CALL_MS }, signal)
  const change = <T>(call: Omit<HttpCall<T>, 'timeoutMs'>, signal: AbortSignal): Promise<T> =>
    http.call({ timeoutMs: SUBMIT_MS, ...call }, signal)
  const pathOf = (key: string): string => `/jobs/${encodeURIComponent(key)}`
  return {
    health: (signal) => get('/health', health, signal),
    rates: (signal) => get('/offers', rates, signal),
    submit: (key, body, signal) =>
      change({ method: 'PUT', path: pathOf(key), body, answer: jobOf(key) }, signal),
    job: (key, signal) => get(pathOf(key), jobOf(key), signal).catch(unlessUnknown),
    cancel: async (key, signal) => {
      await change({ method: 'POST', path: `${pathOf(key)}/cancel`, body: {}, answer: jobOf(key) }, signal)
    },
    jobs: async (owner, signal) =>
      (await get(`/jobs?owner=${encodeURIComponent(owner)}`, jobList, signal)).items,
    logs: async (key, signal) =>
      (await get(`${pathOf(key)}/logs?lines=${LOG_LINES}`, logTail, signal).catch(unlessUnknown))?.lines ??
      [],
    volumes: async (prefix, signal) =>
      (await get(`/volumes?prefix=${encodeURIComponent(prefix)}`, volumeList, signal)).items,
    deleteVolume: async (name, signal) => {
      const path = `/volumes/${encodeURIComponent(name)}`
      await change({ method: 'DELETE', path, answer: z.unknown() }, signal)
    },
    close: () => http.close(),
  }
}

/** Returns nothing for an unknown key, by its code: a 404 without it comes from Modal if the gateway is not deployed. */
function unlessUnknown(error: unknown): undefined {
  if (error instanceof HttpError && problemOf(error)?.code === 'unknown-key') return undefined
  throw error
}
