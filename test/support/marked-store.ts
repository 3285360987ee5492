import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import type { ObjectStore } from '../../storage/store'

/** The deployment of stores that tests make. */
export const STORE_OWNER = 'dep-0000000000'

/** Makes a folder the store of a deployment, as `crucible dev` does. */
export function makeMarkedFolder(folder: string, id = STORE_OWNER): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(join(folder, layout.deployment()), `${JSON.stringify({ id })}\n`)
}

/** A store in a new marked folder. */
export function markedStore(folder: string, now: () => number = Date.now): ObjectStore {
  makeMarkedFolder(folder)
  return openStore(pathToFileURL(folder).href, now)
}
