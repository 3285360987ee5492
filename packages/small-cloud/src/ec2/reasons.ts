/** The reasons for the end of instances, in EC2's codes. */
import type { Reason } from './model'

export const USER_INITIATED: Reason = {
  code: 'Client.UserInitiatedShutdown',
  message: 'Client.UserInitiatedShutdown: User initiated shutdown',
}
export const SELF_INITIATED: Reason = {
  code: 'Client.InstanceInitiatedShutdown',
  message: 'Client.InstanceInitiatedShutdown: Instance initiated shutdown',
}
/** EC2 ends a machine for this reason if the caller of its launch may not use the key of its disks. */
export const NO_KEY: Reason = {
  code: 'Client.InternalError',
  message: 'Client.InternalError: Client error on launch',
}
export const SPOT_TERMINATION: Reason = {
  code: 'Server.SpotInstanceTermination',
  message: 'Server.SpotInstanceTermination: Spot instance termination',
}
/** EC2 does not document this reason for an instance whose Capacity Block ends. */
export const BLOCK_ENDED: Reason = {
  code: 'Server.CapacityBlockExpired',
  message: 'Server.CapacityBlockExpired: The Capacity Block of the instance ends',
}
export const HARDWARE: Reason = {
  code: 'Server.InternalError',
  message: 'Server.InternalError: Internal error on launch',
}
