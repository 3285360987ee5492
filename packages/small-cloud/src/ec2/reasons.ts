/** Why instances end, by EC2's codes. */
import type { Reason } from './model'

export const USER_INITIATED: Reason = {
  code: 'Client.UserInitiatedShutdown',
  message: 'Client.UserInitiatedShutdown: User initiated shutdown',
}
export const SELF_INITIATED: Reason = {
  code: 'Client.InstanceInitiatedShutdown',
  message: 'Client.InstanceInitiatedShutdown: Instance initiated shutdown',
}
export const SPOT_TERMINATION: Reason = {
  code: 'Server.SpotInstanceTermination',
  message: 'Server.SpotInstanceTermination: Spot instance termination',
}
/** What EC2 says of an instance whose Capacity Block ends is not documented. */
export const BLOCK_ENDED: Reason = {
  code: 'Server.CapacityBlockExpired',
  message: 'Server.CapacityBlockExpired: The Capacity Block of the instance ends',
}
export const HARDWARE: Reason = {
  code: 'Server.InternalError',
  message: 'Server.InternalError: Internal error on launch',
}
