import { isDirect, ownEnvironment, type Environment } from './config'
import type * as Outside from './outside'

/** Makes `fetch` take the way of `network/outside.ts`, in the whole process. Its first call fails if a setting cannot be used. */
export function leadFetchOutside(environment: Environment = ownEnvironment()): void {
  if (isDirect(environment)) return
  const plain = globalThis.fetch
  // Few commands fetch anything, so the way is prepared for the first that does.
  globalThis.fetch = async (...request) => {
    const { dispatcherTo, setGlobalDispatcher } = require('./outside') as typeof Outside
    setGlobalDispatcher(dispatcherTo({}, environment))
    globalThis.fetch = plain
    return plain(...request)
  }
}
