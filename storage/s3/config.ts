import type { Environment } from '../home'

/** The SDK asks for a newer Node than Crucible does, on standard error, at each start: whoever runs it has no use for that. */
export function silenceSdk(env: NodeJS.ProcessEnv = process.env): void {
  env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true'
}

/** What the environment says of S3, in the variables that all AWS tools read. */
export interface S3Environment {
  region?: string
  endpoint?: string
  /** Of the token service, where it is not that of AWS. */
  tokenEndpoint?: string
}

export function readS3Environment(env: Environment = process.env): S3Environment {
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL
  const tokenEndpoint = env.AWS_ENDPOINT_URL_STS || env.AWS_ENDPOINT_URL
  return {
    ...(region ? { region } : {}),
    ...(endpoint ? { endpoint: endpoint.replace(/\/+$/, '') } : {}),
    ...(tokenEndpoint ? { tokenEndpoint } : {}),
  }
}
