import { readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { identify, isAlive, type ProcessIdentity } from './process-identity'

/** The process in which a worker runs. */
export interface WorkerIdentity {
  /** `orchestrator`, or the name of a backend. */
  role: string
  /** Version of this product; empty if unknown. */
  version: string
  host: string
  process: ProcessIdentity
  /** Namespace of its process id: a container that starts again has another one. Missing where the system has no such namespaces. */
  namespace: string | undefined
}

/** The identity of this process as a worker of a role: at most a few hundred characters, shown in the Temporal UI. */
export function identityOf(role: string, version = ''): string {
  const own = identify(process.pid)
  const parts = new URLSearchParams({
    version,
    pid: String(process.pid),
    started: own?.started ?? '',
  })
  const namespace = pidNamespace()
  if (namespace !== undefined) parts.set('ns', namespace)
  return `${role}@${hostname()}?${parts.toString()}`
}

/** The worker that an identity names; undefined if it is not of this form. */
export function parseIdentity(identity: string): WorkerIdentity | undefined {
  const match = /^([^@?]+)@([^@?]+)\?([^?]*)$/.exec(identity)
  if (match === null) return undefined
  const [, role = '', host = '', parts] = match
  const values = new URLSearchParams(parts)
  const pid = Number(values.get('pid'))
  const started = values.get('started') ?? ''
  if (!Number.isSafeInteger(pid) || pid <= 0 || started === '') return undefined
  const namespace = values.get('ns') ?? undefined
  return { role, host, version: values.get('version') ?? '', process: { pid, started }, namespace }
}

/**
 * Whether a worker has ended, as far as this process can see: it was a process of this host that is gone, or one of a container of this name,
 * which is another one now. A process of another host may live.
 */
export function isDeadHere(identity: string): boolean {
  const worker = parseIdentity(identity)
  if (worker === undefined || worker.host !== hostname()) return false
  return worker.namespace !== pidNamespace() || !isAlive(worker.process)
}

function pidNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return undefined
  }
}
