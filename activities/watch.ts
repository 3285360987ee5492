import type { WatchActivities } from '../core/activities'
import type { Fleet } from './fleet'
import { beating } from './heartbeat'

/** The long activity that follows one machine; all of a worker's share one fleet. */
export function createWatchActivities(fleet: Fleet): WatchActivities {
  return {
    watch: (input) => beating((signal) => fleet.watch(input, signal)),
  }
}
