import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Socket } from 'node:net'

/** Returns the process of a client of a loopback service; `undefined` when the system does not show it. */
export function clientOf({
  localPort,
  remotePort,
}: Pick<Socket, 'localPort' | 'remotePort'>): number | undefined {
  try {
    const inode = inodeOf(remotePort!, localPort!)
    const pid = inode === undefined ? undefined : holderOf(inode)
    return pid === undefined ? undefined : Number(pid)
  } catch {
    // The host does not run Linux, or the process has ended.
    return undefined
  }
}

/**
 * Returns how many hops a process is away from its machine: 1 for a process of the machine, 2 for one in a container, which has a PID
 * namespace below the machine's. `undefined` when the system does not show it.
 */
export function hopsOf(pid: number): number | undefined {
  try {
    return depthOf(String(pid)) - depthOf('self')
  } catch {
    // The host does not run Linux, or the process has ended.
    return undefined
  }
}

/** The socket of a client on loopback. Clients of other services can have the same port. */
function inodeOf(clientPort: number, servicePort: number): string | undefined {
  const [client, service] = [clientPort, servicePort].map(
    (port) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`,
  )
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n')) {
    const [, local, remote, , , , , , , inode] = line.trim().split(/\s+/)
    if (local === client && remote === service) return inode
  }
  return undefined
}

function holderOf(inode: string): string | undefined {
  const socket = `socket:[${inode}]`
  const leadsThere = (path: string): boolean => {
    try {
      return readlinkSync(path) === socket
    } catch {
      // The socket has been closed.
      return false
    }
  }
  const isHolder = (pid: string): boolean => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((name) => leadsThere(`/proc/${pid}/fd/${name}`))
    } catch {
      // The process belongs to another user, or has ended.
      return false
    }
  }
  // Youngest first: the client has usually just started.
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.sort((a, b) => Number(b) - Number(a)).find(isHolder)
}

/** Returns the number of PID namespaces that a process is in, from ours downwards. */
function depthOf(pid: string): number {
  const line = /^NSpid:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return line === null ? NaN : line[1]!.split(/\s+/).length
}
