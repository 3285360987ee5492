import { isAbsolute } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FileStore } from './file-store'
import { readS3Environment } from './s3/config'
import { parsePlace } from './s3/place'
import { S3Store } from './s3/s3-store'
import { StoreError, type ObjectStore } from './store'

/** How each scheme is opened. */
const OPENERS: Readonly<Record<string, (url: URL, now: () => number) => ObjectStore>> = {
  'file:': openFolder,
  's3:': openBucket,
}

/**
 * The object store that a URL names (`file:///srv/crucible`, `s3://bucket/prefix`). Throws a `StoreError` that says what to write when the URL
 * names none.
 *
 * @param now the wall clock, by which leftovers are old enough to be removed
 */
export function openStore(url: string, now: () => number = Date.now): ObjectStore {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const opener = parsed && OPENERS[parsed.protocol]
  if (parsed === undefined || opener === undefined) {
    const known = Object.keys(OPENERS)
      .map((scheme) => `${scheme}//`)
      .join(', ')
    throw badUrl(url, `it must begin with one of ${known}; for a folder write file:///absolute/path`)
  }
  return opener(parsed, now)
}

function openFolder(url: URL, now: () => number): ObjectStore {
  if (url.host !== '')
    throw badUrl(url.href, `a folder has three slashes: file:///${url.host}${url.pathname}`)
  if (url.search !== '' || url.hash !== '')
    throw badUrl(url.href, 'write ? as %3F and # as %23 in a folder name')
  let path: string
  try {
    path = fileURLToPath(url)
  } catch (error) {
    throw badUrl(url.href, error instanceof Error ? error.message : String(error))
  }
  if (!isAbsolute(path) || path === '/')
    throw badUrl(url.href, 'name a folder of its own, such as file:///srv/crucible')
  return new FileStore(path.replace(/\/+$/, ''), now)
}

/** What the URL does not say, the variables that all AWS tools read do; the store's own URL then says it to machines too. */
function openBucket(url: URL, now: () => number): ObjectStore {
  const { region, endpoint } = readS3Environment()
  const told = parsePlace(url)
  // A region of this machine's own account says nothing of a server of somebody else.
  const place = {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...told,
  }
  return new S3Store(place, now)
}

function badUrl(url: string, why: string): StoreError {
  return new StoreError(`Cannot open the object store ${url}: ${why}.`, {
    isTransient: false,
    code: 'BAD_URL',
  })
}
