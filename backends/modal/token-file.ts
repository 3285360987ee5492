import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import type { CredentialSource } from '../credentials'

/** The way to the gateway, as set-up stores it. */
export interface StoredToken {
  url: string
  /** `wk-...` */
  key: string
  /** `ws-...` */
  secret: string
}

const storedToken = z.looseObject({ url: z.string(), key: z.string(), secret: z.string() })

/** `modal.json` in Crucible's folder. */
export function tokenPath(settings: Record<string, string | undefined>, home: string): string {
  return join(settings['CRUCIBLE_HOME'] ?? join(settings['HOME'] ?? home, '.crucible'), 'modal.json')
}

/** The proxy token: what set-up stored, unless the environment names another. */
export function modalCredentials(settings: Record<string, string | undefined>): CredentialSource {
  return {
    variables: ['CRUCIBLE_MODAL_KEY', 'CRUCIBLE_MODAL_SECRET', 'CRUCIBLE_MODAL_URL'],
    file: {
      paths: [tokenPath(settings, homedir())],
      read: (text) => {
        const { key, secret, url } = storedToken.parse(JSON.parse(text))
        return { CRUCIBLE_MODAL_KEY: key, CRUCIBLE_MODAL_SECRET: secret, CRUCIBLE_MODAL_URL: url }
      },
    },
  }
}

/** Reads the token; undefined without a complete file. */
export function readToken(path: string): StoredToken | undefined {
  try {
    return storedToken.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return undefined
  }
}

/** Readable for its owner only, from its first moment. */
export function writeToken(path: string, token: StoredToken): void {
  mkdirSync(dirname(path), { recursive: true })
  const made = `${path}.${process.pid}`
  writeFileSync(made, `${JSON.stringify(token)}\n`, { mode: 0o600 })
  chmodSync(made, 0o600)
  renameSync(made, path)
}

export function removeToken(path: string): void {
  rmSync(path, { force: true })
}
