import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'

/** The kinds of damage to a document, for the tables of `damage.test.ts` and `damage-of-others.test.ts`. */

const RANDOM = Buffer.from(Array.from({ length: 64 }, (_, index) => 0x80 | ((index * 151 + 29) % 128)))

/** Damages a file, whose content was `before`. */
type Damage = (path: string, before: Buffer, own: string) => Promise<void>

/** `own` is the id in the document that another owner's has not. */
export const DAMAGES: Record<string, Damage> = {
  missing: (path) => rm(path),
  empty: (path) => writeFile(path, ''),
  truncated: (path, before) => writeFile(path, before.subarray(0, before.length / 2)),
  'with 64 random bytes in the middle': (path, before) => {
    const middle = Math.floor(before.length / 2)
    return writeFile(path, Buffer.concat([before.subarray(0, middle), RANDOM, before.subarray(middle)]))
  },
  'not UTF-8': (path, before) => writeFile(path, Buffer.concat([Buffer.from([0xff, 0xfe]), before])),
  'of another JSON type': (path) => writeFile(path, '[42]'),
  'of 50 MB': (path) => writeFile(path, Buffer.alloc(50 * 1024 * 1024, 0x20)),
  'a folder': async (path) => {
    await rm(path)
    await mkdir(path)
  },
  'of another owner': (path, before, own) =>
    writeFile(path, before.toString('utf8').replaceAll(own, `${own}-stranger`)),
  refused: (path) => chmod(path, 0),
}

/** Words of JavaScript that no person should read. */
export const RAW =
  /Cannot read propert|is not a function|undefined|NaN|Unexpected token|is not iterable|\[object /
