import { isDirect, ownEnvironment, type Environment } from './config'
import type * as Outside from './outside'

/** Makes `fetch` take the way of `network/outside.ts`, in the whole process. Throws if a setting cannot be used. */
export function leadFetchOutside(environment: Environment = ownEnvironment()): void {
  if (isDirect(environment)) return
  const { dispatcherTo, setGlobalDispatcher } = require('./outside') as typeof Outside
  setGlobalDispatcher(dispatcherTo({}, environment))
}
