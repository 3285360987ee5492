import { StoreError } from './store'

/** Operating system errors that may end while the caller keeps retrying; all others are permanent. */
const TRANSIENT: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free some space there',
  EDQUOT: 'the disk quota is used up: free some space there',
  EMFILE: 'this process has too many files open',
  ENFILE: 'this machine has too many files open',
  EIO: 'the disk reports an error: look at the system log',
  EAGAIN: 'the file system is busy',
  EBUSY: 'the file system is busy',
  EINTR: 'the call was interrupted',
  ESTALE: 'the network file system lost the file: mount it again if this lasts',
  ETIMEDOUT: 'the network file system does not answer',
  EHOSTDOWN: 'the network file system does not answer',
  ENOTCONN: 'the network file system does not answer',
}

const PERMANENT: Readonly<Record<string, string>> = {
  EACCES: 'permission denied: give this user read and write access to it',
  EPERM: 'permission denied: give this user read and write access to it',
  EROFS: 'the file system is read-only: mount it writable or choose another folder',
  ENAMETOOLONG: 'a part of the name is too long for this file system',
  ENOTDIR: 'a file exists where a folder is needed: move it',
  EEXIST: 'a file exists where a folder is needed: move it',
  EISDIR: 'a folder exists where a file is needed: move it',
  ENOTEMPTY: 'a folder exists where a file is needed: move it',
  ELOOP: 'it goes through a loop of links',
}

/** Converts a failed file system call to a store error; `doing` completes "Could not ...". */
export function storeErrorOf(error: unknown, doing: string): StoreError {
  if (error instanceof StoreError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const passing = code === undefined ? undefined : TRANSIENT[code]
  const why = passing ?? (code === undefined ? undefined : PERMANENT[code]) ?? message
  return new StoreError(`Could not ${doing}: ${why}${code === undefined ? '' : ` (${code})`}.`, {
    isTransient: passing !== undefined,
    code,
    cause: error,
  })
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code !== undefined && codes.includes(code)
}
