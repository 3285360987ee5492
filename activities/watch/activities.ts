import type { WatchActivities } from '../../core/activities'
import type { WatchLoop } from './loop'
import { beating } from '../heartbeat'

/** The long activity that follows one machine; all of a worker's share one loop. */
export function createWatchActivities(loop: WatchLoop): WatchActivities {
  return {
    watch: (input) => beating((signal) => loop.watch(input, signal)),
  }
}
