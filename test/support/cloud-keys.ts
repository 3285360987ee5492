import type { Cloud } from '#small-cloud'

/** Sets the keys of a small cloud where the SDK of this process looks for them. */
export function adoptKeys({ credentials }: Pick<Cloud, 'credentials'>): void {
  Object.assign(process.env, {
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  })
}

/** The headers of a cloud's operator, for requests below `/_sim/` and to Modal's control plane. */
export function operatorOf({ controlKey }: { controlKey: string }): Record<string, string> {
  return { authorization: `Bearer ${controlKey}`, 'content-type': 'application/json' }
}
