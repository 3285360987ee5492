import type { MachineHandle } from '../../core/handle'
import type { CallContext, LogPage } from '../backend'
import { hasCode } from './errors'
import type { Host } from './host'
import { isMachineId } from './machines'

/** The serial console, whole: the provider keeps its last 64 KiB. */
export async function logs(host: Host, { id }: MachineHandle, { signal }: CallContext): Promise<LogPage> {
  if (!isMachineId(id)) return { text: '' }
  try {
    return { text: (await host.api.machines.console(id, signal)) ?? '' }
  } catch (error) {
    if (hasCode(error, 'InvalidInstanceID.NotFound')) return { text: '' }
    throw error
  }
}
