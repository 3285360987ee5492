variable "prefix" {
  description = "First part of all names. Each prefix is a separate set-up."
  type        = string
  default     = "crucible"
}

variable "regions" {
  description = "Regions with machines. The first one also has the store and the roles."
  type        = list(string)
}

variable "bucket" {
  description = "Name of the store's bucket."
  type        = string
}

variable "create_bucket" {
  description = "Whether to create the bucket. An existing one is used unchanged."
  type        = bool
  default     = true
}

variable "create_spot_role" {
  description = "Whether to create the role AWSServiceRoleForEC2Spot, of which an account has one."
  type        = bool
  default     = true
}

variable "workers_may_buy" {
  description = "Whether workers may buy and hold capacity in advance."
  type        = bool
  default     = false
}

variable "deployment" {
  description = "Id of the deployment whose machines and reservations the roles may change. \"*\" stands for every deployment in the account."
  type        = string
  default     = "*"
}

variable "kms_key_arn" {
  description = "ARN of the KMS key that encrypts the bucket; S3's own key if null."
  type        = string
  default     = null
}

variable "disk_key_arns" {
  description = "ARNs of the account's own KMS keys for disks, one for each Region that has one; empty for AWS's own."
  type        = list(string)
  default     = []
}

variable "role_path" {
  description = "Path of the roles."
  type        = string
  default     = "/"
}

variable "permissions_boundary" {
  description = "ARN of the policy that bounds the roles; none if null."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of every resource, in addition to crucible:setup."
  type        = map(string)
  default     = {}
}

variable "networks" {
  description = "The network of each Region: an existing one by its id, or the availability zones of a new one."
  type = map(object({
    vpc_id = optional(string)
    zones  = optional(list(string), [])
  }))
}
