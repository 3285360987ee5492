import { withoutEnd } from '../core/trim'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CODES, messageOf } from '../core/errors'
import { FileStore } from './file-store'
import type * as s3 from './s3/open'
import { StoreError, type ObjectStore } from './store'

const EXAMPLE = 'file:///srv/crucible'

/** The function that opens the stores of each scheme. */
const OPENERS: Readonly<Record<string, (url: URL, now: () => number) => ObjectStore>> = {
  'file:': openFolder,
  's3:': openBucket,
}

/**
 * Opens the object store at a URL (`file:///srv/crucible`, `s3://bucket/prefix`), which is the explicit or default value of CRUCIBLE_STORE.
 * Throws a `StoreError` that names the variable and the correction for an invalid URL.
 *
 * @param now the wall clock, which decides when leftovers in a folder are old enough to be removed
 */
export function openStore(url: string, now: () => number = Date.now): ObjectStore {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const opener = parsed && OPENERS[parsed.protocol]
  if (parsed !== undefined && opener !== undefined) return opener(parsed, now)
  // A text without a scheme is a path.
  const path = parsed === undefined && url !== '' ? resolve(url.replace(/^~(?=\/|$)/, homedir())) : undefined
  const folder = path === undefined ? EXAMPLE : pathToFileURL(path).href
  throw badUrl(url, `the store is a folder or a bucket: write ${folder} or s3://bucket/prefix`)
}

function openFolder(url: URL, now: () => number): ObjectStore {
  if (url.host !== '')
    throw badUrl(url.href, `a folder has three slashes: write file:///${url.host}${url.pathname}`)
  if (url.search !== '' || url.hash !== '')
    throw badUrl(url.href, 'in the name of a folder write ? as %3F and # as %23')
  let path: string
  try {
    path = fileURLToPath(url)
  } catch (error) {
    throw badUrl(url.href, `${messageOf(error)}; write a URL such as ${EXAMPLE}`)
  }
  if (!isAbsolute(path) || path === '/') throw badUrl(url.href, `name a separate folder, such as ${EXAMPLE}`)
  return new FileStore(withoutEnd(path, '/'), now)
}

/**
 * Loaded only for a bucket: its SDK takes longer to load than most commands take. Resolved from the folder of the bundle of quick commands
 * as well, which does not contain it.
 */
function openBucket(url: URL): ObjectStore {
  const path = join(__dirname, '..', 'storage', 's3', 'open')
  return (createRequire(__filename)(path) as typeof s3).openBucket(url)
}

function badUrl(url: string, why: string): StoreError {
  return new StoreError(`CRUCIBLE_STORE is ${JSON.stringify(url)}: ${why}.`, {
    isTransient: false,
    code: CODES.badUrl,
  })
}
