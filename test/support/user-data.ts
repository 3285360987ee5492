import { gunzipSync } from 'node:zlib'
import type { HandOverDocument } from '../../core/documents'
import { openSecrets, SecretsError } from '../../storage/secrets'

/** A file that cloud-init writes at the first boot. */
export interface CloudFile {
  path: string
  permissions: string
  text: string
}

/** The files that cloud-init makes of user data. */
export function filesOfUserData(userData: string): CloudFile[] {
  const [first, ...rest] = userData.split('\n')
  if (first !== '#cloud-config') throw new Error(`cloud-init does not know ${first}`)
  const { write_files: files } = JSON.parse(rest.join('\n')) as {
    write_files: { path: string; permissions: string; encoding: 'gz+b64'; content: string }[]
  }
  return files.map(({ path, permissions, content }) => ({
    path,
    permissions,
    text: gunzipSync(Buffer.from(content, 'base64')).toString(),
  }))
}

/** The parameters of the bootstrap in user data, as `backends/bootstrap.ts` makes it. */
export interface BootstrapParameters {
  url: string
  key: string
  attemptId: string
  send: string | null
  giveUpSeconds?: number
  machineId: { literal: string } | null
}

export function parametersOfUserData(userData: string): BootstrapParameters {
  const file = filesOfUserData(userData).find(({ path }) => path.endsWith('.json'))
  return JSON.parse(file!.text) as BootstrapParameters
}

/** The parameters of the bootstrap in a container's variable. */
export function parametersOfVariable(packed: string): BootstrapParameters {
  return JSON.parse(Buffer.from(packed, 'base64').toString()) as BootstrapParameters
}

/** Asks the store by a signed URL; undefined for an object that is gone. */
export type AskByUrl = (method: 'GET' | 'DELETE', url: string) => Promise<Buffer | undefined>

/** The hand-over of a machine, as `runner/bootstrap.py` reads it; undefined if it is gone, changed, or of another attempt. */
export async function readHandOver(
  { url, key, attemptId }: Pick<BootstrapParameters, 'url' | 'key' | 'attemptId'>,
  ask: AskByUrl,
): Promise<HandOverDocument | undefined> {
  const sealed = await ask('GET', url)
  const told = sealed && documentIn(sealed, key)
  return told?.attemptId === attemptId ? told : undefined
}

/** What was sealed with a key; undefined if it was not. */
function documentIn(sealed: Buffer, key: string): HandOverDocument | undefined {
  try {
    const { handOver } = openSecrets(Buffer.from(key, 'hex'), sealed.toString())
    return JSON.parse(handOver!) as HandOverDocument
  } catch (error) {
    if (error instanceof SecretsError) return undefined
    throw error
  }
}
