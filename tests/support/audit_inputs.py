"""Inputs of each model of ``audit_models.py``, whose import defines operators for the process."""

INPUTS = {
    "transformer_encoder": ["f32[2,16,64]"],
    "detector": ["f32[1,3,64,64]"],
    "samplers": ["f32[8,6]"],
    "gaussian_process": ["f32[7,1]"],
    "kalman": ["f32[5,2]"],
    "special_functions": ["f32[4,33]"],
    "statistics": ["f32[6,10]", "labels=i64[6,10]:0..3"],
    "log_cum_sum_exp": ["f32[4,32]"],
    "fractional_pooling": ["image=f32[2,3,20,20]"],
    "custom_operator": ["f32[3,16]"],
}
