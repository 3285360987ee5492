/** The records of a Lambda account. */
import type { StateChange } from '../machines/history'
import type { Hosted } from '../machines/pool'
import type { LambdaType } from './types'

export type LambdaStatus = 'booting' | 'active' | 'unhealthy' | 'terminating' | 'terminated' | 'preempted'

export interface LambdaInstance extends Hosted {
  /** Name; empty without one. */
  name: string
  hostname: string
  region: string
  type: LambdaType
  sshKey: string
  mounts: { mount_point: string; file_system_id: string }[]
  tags: Map<string, string>
  userData: string
  ip: string
  privateIp: string
  launchedAtMs: number
  /** Lists do not show it before this instant. */
  visibleAtMs: number
  /** Oldest first; never empty. */
  history: StateChange<LambdaStatus>[]
}

export interface SshKey {
  id: string
  name: string
  publicKey: string
}

export interface FileSystem {
  id: string
  name: string
  region: string
  createdAtMs: number
}

export const ENDED: readonly LambdaStatus[] = ['terminated', 'preempted']
/** Billing begins when the instance passes its health checks, or fails them, and ends with the request to terminate. */
export const BILLED: readonly LambdaStatus[] = ['active', 'unhealthy']
