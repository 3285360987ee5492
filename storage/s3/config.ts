import { withoutEnd } from '../../core/trim'
import type { Environment } from '../home'

/** The S3 settings of the environment, in the variables of all AWS tools. */
export interface S3Environment {
  region?: string
  endpoint?: string
  /** Address of a token service other than AWS's. */
  tokenEndpoint?: string
}

export function readS3Environment(): S3Environment {
  const env: Environment = process.env
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL
  const tokenEndpoint = env.AWS_ENDPOINT_URL_STS || env.AWS_ENDPOINT_URL
  return {
    region: region || undefined,
    endpoint: endpoint ? withoutEnd(endpoint, '/') : undefined,
    tokenEndpoint: tokenEndpoint || undefined,
  }
}
