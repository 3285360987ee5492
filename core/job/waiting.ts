import type { JobSpec } from './job'
import { formatBackendChoice, type Pins } from '../offer'
import type { BackendAnswer } from './plan'
import { wantsGpu, type ResourceRequest } from '../resources'

/** A job in line for a machine. Jobs with equal requirements accept the same offers, so the oldest of them goes first. */
export interface Waiter {
  jobId: string
  /** Time of the job's submission: a job that recovers from an interruption keeps its age. */
  sinceMs: number
  wish: string
  /** Backends on which its machine may be. */
  backends: readonly string[]
}

const NAMES_RESERVATION = '@'

/** Name of a group of equal requirements: equal ones have the same digest, and the reservation that the jobs name is readable. */
export function wishNamed(digest: string, reservation: string | undefined): string {
  return reservation === undefined ? digest : `${digest}${NAMES_RESERVATION}${reservation}`
}

/** Returns the reservation that the jobs of a group name. */
export function reservationOfWish(wish: string): string | undefined {
  return wish.split(NAMES_RESERVATION)[1]
}

/** A job that asks a backend for a place to take it; others only look. */
export interface Asker {
  jobId: string
  /** Time of the job's submission. */
  sinceMs: number
  /** Older waiting jobs with equal requirements; this one gets a place only if each of them can have one. */
  ahead: readonly string[]
  /** Whether a job that asked before now takes another place or none, so that its held place is free again. */
  isGone?: boolean
}

/** A request for offers to a backend's worker. */
export interface OffersInput {
  request: ResourceRequest
  pins?: Pins
  /** The job's container image. */
  image?: string
  /** The job for which a place is held, if the backend counts its places. */
  asker?: Asker
}

/** A backend's answer; if it is long, the gzip of its JSON. */
export type SentAnswer = BackendAnswer | { gzipBase64: string }

/** A job's position in its line. */
export interface LinePlace {
  /** 1 for the next one. */
  position: number
  /** Machines that the job waits for, in words: `ec2:spot A10G`. */
  pool: string
}

/** Returns the older waiters with the same requirements, oldest first. Jobs of the same age are ordered by id. */
export function aheadOf<T extends Waiter>(self: Waiter, waiters: readonly T[]): T[] {
  return inOrder(
    waiters.filter((other) => other.wish === self.wish && other.jobId !== self.jobId && isOlder(other, self)),
  )
}

/** Oldest first. */
export function inOrder<T extends Pick<Waiter, 'jobId' | 'sinceMs'>>(waiters: readonly T[]): T[] {
  return [...waiters].sort((a, b) => (isOlder(a, b) ? -1 : 1))
}

function isOlder(a: Pick<Waiter, 'jobId' | 'sinceMs'>, b: Pick<Waiter, 'jobId' | 'sinceMs'>): boolean {
  return a.sinceMs === b.sinceMs ? a.jobId < b.jobId : a.sinceMs < b.sinceMs
}

/** Describes the machines that a job waits for, according to its spec. */
export function poolOf({ backends, resources }: Pick<JobSpec, 'backends' | 'resources'>): string {
  const where = backends.length === 0 ? 'any backend' : backends.map(formatBackendChoice).join(' or ')
  if (!wantsGpu(resources)) return where
  const { accelerators = [], gpus } = resources
  const count = gpus?.min !== undefined && gpus.min > 1 ? `${gpus.min}x ` : ''
  return `${where} ${count}${accelerators.length === 0 ? 'GPU' : accelerators.join(' or ')}`
}

/** `waiting, 3rd for ec2:spot A10G`. */
export function lineInWords({ position, pool }: LinePlace): string {
  return `waiting, ${ordinal(position)} for ${pool}`
}

const ABOUT_LINE = 'Queue: '

/** The message of a job in line. */
export function lineMessage(place: LinePlace): string {
  const rest = place.position === 1 ? '' : ' Older jobs with equal requests go first.'
  return `${ABOUT_LINE}${lineInWords(place)}.${rest}`
}

/** Whether a message names a position, which ages. */
export function isLineMessage(message: string): boolean {
  return message.startsWith(ABOUT_LINE)
}

function ordinal(count: number): string {
  const isTeen = Math.floor(count / 10) % 10 === 1
  const ending = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][count % 10] ?? 'th')
  return `${count}${ending}`
}
