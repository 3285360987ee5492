import { gunzipSync } from 'node:zlib'

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
    ...{ path, permissions },
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
}

export function parametersOfUserData(userData: string): BootstrapParameters {
  const file = filesOfUserData(userData).find(({ path }) => path.endsWith('.json'))
  return JSON.parse(file!.text) as BootstrapParameters
}
