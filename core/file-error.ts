/** Plain words for errors of the operating system, which never reach a person as they are. */

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of its path is a file',
  EISDIR: 'it is a folder, not a file',
  EEXIST: 'it already exists',
  ENOTEMPTY: 'the folder is not empty',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EMFILE: 'this process has too many files open',
  ENFILE: 'this machine has too many files open',
  EIO: 'the disk reports an error',
  ELOOP: 'it goes through a loop of links',
  ENAMETOOLONG: 'its name is too long',
  EBUSY: 'it is in use',
  ETXTBSY: 'it is in use',
}

/** The fields of Node's errors of system calls. */
interface SystemError {
  code?: unknown
  path?: unknown
  message?: unknown
}

/** Says in words why a call on a file failed; an unknown error keeps its own message. */
export function wordsOfFileError(error: unknown): string {
  const { code, message } = error as SystemError
  const words = typeof code === 'string' ? WORDS[code] : undefined
  return words ?? String(message)
}

/** `/data/in.csv: permission denied`; `undefined` for another error than that of a call on a file. */
export function fileErrorInWords(error: unknown): string | undefined {
  const { code, path } = error as SystemError
  if (typeof code !== 'string' || WORDS[code] === undefined) return undefined
  return typeof path === 'string' ? `${path}: ${WORDS[code]}` : WORDS[code]
}

/**
 * Returns what is wrong with a path that does not exist because a name in it is not UTF-8; undefined for any other path. Node replaces each
 * such byte in arguments and in its working folder, so the name leads to no file.
 */
export function undecodableName(path: string): string | undefined {
  return path.includes('\uFFFD')
    ? `The name of ${path} is not UTF-8, so it cannot be opened. Rename it.`
    : undefined
}
