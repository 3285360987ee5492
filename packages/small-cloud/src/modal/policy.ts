/** Names that callers of the gateway may use. */
import { ApiError } from '../wire/errors'
import type { JobRequest } from './documents'

const ALLOWED = {
  registries: ['docker.io', 'nvcr.io', 'ghcr.io', 'quay.io', 'public.ecr.aws'],
  volumes: 'crucible-',
}

export type Allowed = typeof ALLOWED & { secrets: string[] }

/** @param secrets names of the workspace's Secrets */
export function allowedWith(secrets: string[]): Allowed {
  return { ...ALLOWED, secrets }
}

/** Returns why a request is not allowed. */
export function refusalOf(
  { registries, secrets: allowed }: Allowed,
  { image: { reference, secret }, secrets, volumes }: JobRequest,
): string | undefined {
  if (reference !== null && reference !== undefined) {
    const full = fullReference(reference)
    if (!registries.some((registry) => full.startsWith(`${registry}/`)))
      return `the registry of the image ${reference} is not among those allowed at deployment: ${registries.join(', ')}`
  }
  const named = [...secrets, ...(secret === null || secret === undefined ? [] : [secret])]
  const stranger = named.find((name) => !allowed.includes(name))
  if (stranger !== undefined) return `the secret ${stranger} is not among those allowed at deployment`
  return Object.values(volumes)
    .map(volumeRefusal)
    .find((words) => words !== undefined)
}

function volumeRefusal(name: string): string | undefined {
  return name.startsWith(ALLOWED.volumes)
    ? undefined
    : `the volume ${name} does not begin with ${ALLOWED.volumes}`
}

export function refuseVolume(name: string): void {
  const words = volumeRefusal(name)
  if (words !== undefined) throw new ApiError('not-allowed', words, 403)
}

export function fullReference(reference: string): string {
  const [first = '', ...rest] = reference.split('/')
  if (rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')) return reference
  return `docker.io/${rest.length > 0 ? reference : `library/${reference}`}`
}
