/** Routes of the API, except the launch. */
import { generateKeyPairSync } from 'node:crypto'
import { z } from 'zod'
import { route, type HttpRoute } from '../http/service'
import { hasRegion, type LambdaAccount } from './account'
import { invalidParameters, lambdaError, noSuch } from './errors'
import { stateOf } from '../machines/history'
import { ENDED, type LambdaInstance, type SshKey } from './model'
import { LAMBDA_REGIONS, LAMBDA_TYPES } from './types'
import { fileSystemWords, instanceWords, regionWords, typeWords } from './words'

const withId = z.strictObject({ id: z.string() })
const instanceIds = z.strictObject({ instance_ids: z.array(z.string()) })

export function typesRoute(account: LambdaAccount): HttpRoute {
  const { market } = account
  return route('instance-types', 'GET /api/v1/instance-types', {
    run: () => ({
      data: Object.fromEntries(
        LAMBDA_TYPES.map((type) => [
          type.name,
          {
            instance_type: typeWords(type, market.centsPerHour(type)),
            regions_with_capacity_available: account.regionsWith(type).map(regionWords),
          },
        ]),
      ),
    }),
  })
}

export function instanceRoutes(account: LambdaAccount): HttpRoute[] {
  const { market, life } = account
  const words = (instance: LambdaInstance, atMs = account.shownAtMs()) =>
    instanceWords(instance, { atMs, cents: market.centsPerHour(instance.type) })
  const named = (id: string): LambdaInstance => {
    const found = account.visible().find((each) => each.id === id)
    if (found === undefined) throw noSuch('instance')
    return found
  }
  return [
    route('instances', 'GET /api/v1/instances', {
      query: z.strictObject({ cluster_id: z.string().optional() }),
      // The call lists running instances; ended ones are found by their id.
      run: () => ({
        data: account
          .visible()
          .map((each) => words(each))
          .filter(({ status }) => !ENDED.includes(status)),
      }),
    }),
    route('instance', 'GET /api/v1/instances/:id', {
      params: withId,
      run: ({ params }) => ({ data: words(named(params.id)) }),
    }),
    route('rename', 'POST /api/v1/instances/:id', {
      params: withId,
      body: z.strictObject({ name: z.string().max(64).optional() }),
      isMutating: true,
      run: ({ params, body }) => {
        const instance = named(params.id)
        instance.name = body.name ?? instance.name
        return { data: words(instance) }
      },
    }),
    route('terminate', 'POST /api/v1/instance-operations/terminate', {
      body: instanceIds,
      isMutating: true,
      run: ({ body }) => {
        // One unknown id fails the whole call before an instance ends.
        const instances = body.instance_ids.map(named)
        for (const instance of instances) void life.terminate(instance)
        return { data: { terminated_instances: instances.map((each) => words(each, account.nowMs)) } }
      },
    }),
    route('restart', 'POST /api/v1/instance-operations/restart', {
      body: instanceIds,
      isMutating: true,
      run: ({ body }) => {
        const instances = body.instance_ids.map(named)
        if (instances.some((each) => !['active', 'unhealthy'].includes(stateOf(each))))
          throw lambdaError(
            'global/conflict',
            'The request conflicts with the current state of the resource.',
          )
        for (const instance of instances) void life.restart(instance)
        return { data: { restarted_instances: instances.map((each) => words(each, account.nowMs)) } }
      },
    }),
  ]
}

export function otherRoutes(account: LambdaAccount): HttpRoute[] {
  const keyWords = ({ id, name, publicKey }: SshKey) => ({ id, name, public_key: publicKey })
  return [
    route('ssh-keys', 'GET /api/v1/ssh-keys', { run: () => ({ data: account.sshKeys.map(keyWords) }) }),
    route('add-ssh-key', 'POST /api/v1/ssh-keys', {
      body: z.strictObject({
        name: z.string().min(1).max(64),
        public_key: z.string().min(1).max(4096).optional(),
      }),
      isMutating: true,
      run: ({ body: { name, public_key: given } }) => {
        if (account.sshKeys.some((key) => key.name === name))
          throw invalidParameters(`name: there is an SSH key ${name}`)
        if (given !== undefined && !/^(ssh-|ecdsa-)\S+ \S+/.test(given))
          throw invalidParameters('public_key: is not a public key')
        const { publicKey, privateKey } =
          given === undefined ? newKeyPair() : { publicKey: given, privateKey: undefined }
        const key = { id: account.id(), name, publicKey }
        account.sshKeys.push(key)
        return {
          data: { ...keyWords(key), ...(privateKey === undefined ? {} : { private_key: privateKey }) },
        }
      },
    }),
    route('delete-ssh-key', 'DELETE /api/v1/ssh-keys/:id', {
      params: withId,
      isMutating: true,
      run: ({ params: { id } }) => {
        const index = account.sshKeys.findIndex((key) => key.id === id)
        if (index < 0) throw invalidParameters('id: there is no such SSH key')
        account.sshKeys.splice(index, 1)
        return { data: {} }
      },
    }),
    ...fileSystemRoutes(account),
    route('images', 'GET /api/v1/images', { run: () => ({ data: imageWords() }) }),
    route('regions', 'GET /api/v1/regions', {
      run: () => ({ data: Object.keys(LAMBDA_REGIONS).map(regionWords) }),
    }),
  ]
}

function fileSystemRoutes(account: LambdaAccount): HttpRoute[] {
  const isInUse = (id: string): boolean =>
    [...account.instances.values()].some(
      (each) => !ENDED.includes(stateOf(each)) && each.mounts.some((mount) => mount.file_system_id === id),
    )
  return [
    route('file-systems', 'GET /api/v1/file-systems', {
      run: () => ({ data: account.fileSystems.map((each) => fileSystemWords(each, isInUse(each.id))) }),
    }),
    route('create-file-system', 'POST /api/v1/filesystems', {
      body: z.strictObject({
        name: z
          .string()
          .min(1)
          .max(60)
          .regex(/^[a-zA-Z][0-9a-zA-Z-]*$/),
        region: z.string(),
      }),
      isMutating: true,
      run: ({ body: { name, region } }) => {
        if (!hasRegion(region)) throw invalidParameters(`region: there is no region ${region}`)
        if (account.fileSystems.some((each) => each.name === name))
          throw lambdaError('global/duplicate', `There is a file system ${name}.`)
        const made = { id: account.id(), name, region, createdAtMs: account.nowMs }
        account.fileSystems.push(made)
        return { data: fileSystemWords(made, false) }
      },
    }),
    route('delete-file-system', 'DELETE /api/v1/filesystems/:id', {
      params: withId,
      isMutating: true,
      run: ({ params: { id } }) => {
        const index = account.fileSystems.findIndex((each) => each.id === id)
        if (index < 0) throw noSuch('file system')
        if (isInUse(id)) throw lambdaError('filesystems/filesystem-in-use', 'The file system is in use.')
        account.fileSystems.splice(index, 1)
        return { data: { deleted_ids: [id] } }
      },
    }),
  ]
}

function newKeyPair(): { publicKey: string; privateKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  return {
    publicKey: `ssh-ed25519 ${raw.toString('base64')}`,
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
  }
}

const IMAGE_TIME = '2026-06-01T00:00:00Z'

/** Lambda's own image, for both architectures in each region. */
function imageWords() {
  return Object.keys(LAMBDA_REGIONS).flatMap((region, i) =>
    (['x86_64', 'arm64'] as const).map((architecture, j) => ({
      id: `${String(2 * i + j).padStart(8, '0')}-0000-4000-8000-000000000000`,
      created_time: IMAGE_TIME,
      updated_time: IMAGE_TIME,
      name: `Lambda Stack 22.04 ${architecture}`,
      description: 'Ubuntu 22.04 with drivers, CUDA, PyTorch and Docker',
      family: 'lambda-stack-22-04',
      version: '22.4.3',
      architecture,
      region: regionWords(region),
    })),
  )
}
